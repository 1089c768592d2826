"""A model that is served and learns: HTTP in front, one writer behind it, and a log that it is made of.

::

    protocol           HTTP by a parser in machine code, where there is one
    requests, guard    what clients send, and who may
    app                routes: records to the writer, answers back
    brokers            the same from MQTT and NATS
    writer             one thread: apply, commit, answer; snapshots
    fold               the model, as a function of the log: the one way in which it changes
    log, folder        records on the disk; snapshots; what a start reads
    identifiers        what was answered, so that the same request again changes nothing
    monitor, facts     how it is doing, beside the baselines; metrics, page: shown

Needs the extra ``serve``. :mod:`kons.serve.server` puts it together, ``kons serve``
starts it; docs/serving.md.
"""
