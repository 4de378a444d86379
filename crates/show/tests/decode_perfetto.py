"""Prints what a Perfetto file says, decoded by Perfetto's own protos: an oracle for our writer.

usage: decode_perfetto.py FILE

JSON with a list of slices [process, thread, track, name, category, from_ns, to_ns, annotations], of instants
[track, name, at_ns], of counters [process, track, unit, [[at_ns, value], ...]], and of arrows {id: [[track, name,
from_ns, "through" or "last"], ...]}. A name that was not introduced, an event on a track that was not declared and a
slice that is not closed end it with an error.
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

trace = protos.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
Event = protos.TrackEvent
tracks, names, categories, annotations = {}, {}, {}, {}
slices, instants = [], []
counters, arrows, open_slices = {}, collections.defaultdict(list), collections.defaultdict(list)


def place(uuid):
    """Names of the process and thread that a track lies in, and its own."""
    process = thread = ""
    at = tracks[uuid]
    while True:
        if at.HasField("process"):
            process = at.process.process_name
        if at.HasField("thread"):
            thread = at.thread.thread_name
            assert tracks[at.parent_uuid].process.pid == at.thread.pid
        if not at.parent_uuid:
            return process, thread, tracks[uuid].name
        at = tracks[at.parent_uuid]


for number, packet in enumerate(trace.packet):
    assert packet.trusted_packet_sequence_id == 1
    assert packet.sequence_flags == (1 if number == 0 else 2)
    for known, new in (
        (names, packet.interned_data.event_names),
        (categories, packet.interned_data.event_categories),
        (annotations, packet.interned_data.debug_annotation_names),
    ):
        known.update((entry.iid, entry.name) for entry in new)
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    if not packet.HasField("track_event"):
        continue
    event, at_ns = packet.track_event, packet.timestamp
    uuid = event.track_uuid
    if event.type == Event.TYPE_COUNTER:
        process, _, name = place(uuid)
        known = counters.setdefault(uuid, [process, name, tracks[uuid].counter.unit_name, []])
        known[3].append([at_ns, event.double_counter_value])
    elif event.type == Event.TYPE_INSTANT:
        instants.append([place(uuid)[2], names[event.name_iid], at_ns])
    elif event.type == Event.TYPE_SLICE_BEGIN:
        said = {
            annotations[one.name_iid]: one.uint_value if one.HasField("uint_value") else one.string_value
            for one in event.debug_annotations
        }
        (category,) = event.category_iids
        name = names[event.name_iid]
        open_slices[uuid].append([*place(uuid), name, categories[category], at_ns, None, said])
        for ids, how in ((event.flow_ids, "through"), (event.terminating_flow_ids, "last")):
            for flow in ids:
                arrows[flow].append([place(uuid)[2], name, at_ns, how])
    elif event.type == Event.TYPE_SLICE_END:
        closed = open_slices[uuid].pop()
        closed[6] = at_ns
        slices.append(closed)
    else:
        sys.exit(f"packet {number}: an event of type {event.type}")
assert not any(open_slices.values()), "slices that are not closed"
json.dump({"slices": slices, "instants": instants, "counters": list(counters.values()), "arrows": arrows}, sys.stdout)
