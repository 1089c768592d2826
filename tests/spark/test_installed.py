"""Without PySpark or Java the rest of this folder is not collected, and one line says so."""

import pytest
from spark_found import REASON


@pytest.mark.skipif(bool(REASON), reason=f"kons.spark is not tested here: {REASON}")
def test_spark_is_here():
    import kons.spark

    assert kons.spark.keyed
