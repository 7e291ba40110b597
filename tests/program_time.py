# SPDX-License-Identifier: Apache-2.0
"""When the operations of a program are done on a network without limits: the oracle of the tests of programs."""

from flitlab.models.application.program import Op, Program


def finished(program: Program, alpha: int = 0, beta: int = 0, rendezvous: bool = False) -> list[int]:
    """When each operation is done if a message of n bytes takes alpha + beta * n, whatever else is on its way.

    rendezvous: no message leaves before its receive is ready, and no send is done before its message has arrived.
    An operation that is never done has -1.
    """
    kind, amount, partner = program.kind.tolist(), program.amount.tolist(), program.partner.tolist()
    after, successor = program.after.tolist(), (program.successor >> 1).tolist()
    need, ready, done = program.need.tolist(), [0] * program.operations, [-1] * program.operations
    released = [o for o in range(program.operations) if need[o] == 0]
    come = [False] * program.operations
    while released:
        o = released.pop()
        come[o] = True
        if kind[o] == Op.CALC:
            ends = {o: ready[o] + amount[o]}
        else:
            send, receive = (o, partner[o]) if kind[o] == Op.SEND else (partner[o], o)
            both = come[partner[o]]
            leaves = max(ready[o], ready[partner[o]]) if rendezvous else ready[send]
            arrives = max(leaves + alpha + beta * amount[o], ready[receive])
            ends = {receive: arrives} if both else {}
            if rendezvous:
                ends |= {send: arrives} if both else {}
            elif o == send:
                ends[send] = leaves
        for end, at in ends.items():
            done[end] = at
            for waiting in successor[after[end] : after[end + 1]]:
                ready[waiting] = max(ready[waiting], at)
                need[waiting] -= 1
                if need[waiting] == 0:
                    released.append(waiting)
    return done
