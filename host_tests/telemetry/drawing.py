"""Seasons as hypothesis draws them: any number of boards, boots, cuts, doubles, wrong clocks."""

from hypothesis import strategies as st

from slotmq_tools.telemetry.season.world import Knobs

often = st.sampled_from((0.0, 0.05, 0.2, 0.5, 1.0))
SEASONS = st.builds(
    Knobs,
    boards=st.integers(1, 3),
    boots=st.integers(1, 5),
    steps=st.sampled_from((0, 3, 20, 40)),
    segment_size=st.sampled_from((512, 768, 2048, 4096)),
    ring=st.sampled_from((2, 3, 8, 100)),
    stops=st.booleans(),
    silences=st.sampled_from((0.0, 0.02, 0.3)),
    cuts=often,
    fails=st.sampled_from((0.0, 0.05)),
    anchors=st.sampled_from((0.0, 0.05, 0.3)),
    wrong_clocks=often,
    harvests=st.sampled_from((0.0, 0.05, 0.2)),
    clears=often,
    repeats=often,
    damage=often,
    bridges=st.sampled_from((0.0, 0.5)),
    renewals=often,
    compacts=st.sampled_from((0.0, 1.0)),
)
