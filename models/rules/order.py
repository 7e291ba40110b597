"""Who goes first: age arbitration of virtual cut-through, and the ranking of hot-potato."""

from flitlab.models.jit import kernel


@kernel
def age_key(eligible, input_vc):
    """Sort key of a waiting head: oldest eligibility first, ties by input port, then VC.

    eligible: tick. input_vc: index of the VC in the numbering of ``flitlab.models.rules.ports``.
    """
    return (eligible << 32) | input_vc


@kernel
def outranks(hops, born, identity, other_hops, other_born, other_identity):
    """Whether a packet goes before another in hot-potato: more hops, then older, then the lower id."""
    if hops != other_hops:
        return hops > other_hops
    if born != other_born:
        return born < other_born
    return identity < other_identity
