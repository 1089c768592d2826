"""One uniform per example, in stream order, whatever the blocks."""

import numpy as np
import pytest

from kons.core.coins import Coins


def test_the_coins_are_those_of_default_rng():
    np.testing.assert_array_equal(Coins(7).draw(50), np.random.default_rng(7).random(50))


@pytest.mark.parametrize("cuts", [[1] * 20, [7, 7, 6], [20], [0, 13, 0, 7]])
def test_blocks_do_not_shift_them(cuts):
    coins = Coins(3)
    drawn = np.concatenate([coins.draw(rows) for rows in cuts])
    np.testing.assert_array_equal(drawn, Coins(3).draw(20))


def test_mark_and_restore():
    coins = Coins(3)
    coins.draw(5)
    mark = coins.mark()
    first = coins.draw(9)
    coins.restore(mark)
    np.testing.assert_array_equal(coins.draw(9), first)


def test_a_mark_does_not_move_with_the_coins():
    coins = Coins(3)
    mark = coins.mark()
    coins.draw(5)
    assert mark != coins.mark()
    assert mark == Coins(3).mark()


def test_spawned_coins_are_repeatable_and_different():
    coins, again = Coins(3), Coins(3)
    own, other = coins.draw(10), coins.spawn().draw(10)
    assert not np.isin(other, own).any()
    np.testing.assert_array_equal(again.spawn().draw(10), other)
    np.testing.assert_array_equal(again.draw(10), own)


def test_numbers_that_nobody_looks_at_are_passed_over():
    drawn, passed = Coins(5), Coins(5)
    for _ in range(7):
        drawn.draw_one()
        passed.pass_one()
    assert passed.state() == drawn.state()
    for _ in range(2):
        passed.pass_one()
        passed.take_back_one()
    drawn.draw_one()
    drawn.take_back_one()
    assert passed.draw_one() == drawn.draw_one()
    mark, expected = passed.mark(), passed.draw(3).tolist()
    passed.pass_one()
    passed.restore(mark)
    assert passed.draw(3).tolist() == expected
