"""Seasons as hypothesis draws them: boards, boots, power cuts, duplicates, wrong clocks.

The first value of each strategy is tried most often, so it is an interesting one.
"""

from hypothesis import strategies as st

from host_tests.telemetry.tables.world import Knobs

often = st.sampled_from((0.2, 0.0, 0.05, 0.5, 1.0))
SEASONS = st.builds(
    Knobs,
    boards=st.integers(1, 3),
    boots=st.sampled_from((4, 3, 5, 2, 1)),
    steps=st.sampled_from((20, 30, 40, 3, 0)),
    segment_size=st.sampled_from((2048, 512, 768, 4096)),
    ring=st.sampled_from((8, 2, 3, 100)),
    stops=st.booleans(),
    silences=st.sampled_from((0.0, 0.02, 0.3)),
    floods=st.sampled_from((0.5, 0.0, 1.0)),
    cuts=often,
    fails=st.sampled_from((0.0, 0.05)),
    anchors=st.sampled_from((0.05, 0.02, 0.1, 0.3, 0.0)),
    wrong_clocks=st.sampled_from((0.2, 0.0, 0.05, 0.5, 1.0)),
    own_clocks=st.sampled_from((0.5, 0.0, 0.2, 1.0)),
    harvests=st.sampled_from((0.05, 0.0, 0.2)),
    clears=often,
    repeats=often,
    damage=st.sampled_from((0.0, 0.05, 0.2, 0.5)),
    bridges=st.sampled_from((0.5, 0.0)),
    renewals=st.sampled_from((0.0, 0.2, 0.5)),
    compacts=st.sampled_from((0.0, 1.0)),
)
