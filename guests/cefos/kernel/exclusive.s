# Threads that must not run twice at once (Figure 3).
#
# Whoever wants to continue to an exclusive thread locks it first. Who does not get the lock continues to its own
# beginning and tries again; so nothing before `enter` may have an effect. The exclusive thread itself, when it is done,
# sets its counter back and opens its lock.

# Locks thread `target`, or starts over. Uses r30.
.macro enter target
        lock    r30, \target
        bnez    r30, entered\@
        self
entered\@:
.endm

# Ends an exclusive thread. Its number must still be in r2.
.macro leave
        rearm
        unlock  r2
        end
.endm
