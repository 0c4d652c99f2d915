// long nats(long depth, long process): calls itself `depth` deep, each time with a NaT in one of its registers, a number in another;
// sends the process signal 10 at the bottom. Answers how many of them found both again.

#include <asm/unistd.h>

	.text
	.global	nats
	.proc	nats
nats:
	.prologue
	.save	ar.pfs, r34
	alloc	loc0 = ar.pfs, 2, 4, 2, 0
	.save	rp, r35
	mov	loc1 = rp
	.body
	cmp.eq	p6, p7 = r0, in0
	;;
	ld8.s	loc2 = [r0]				// NaT, as nothing is there
	mov	loc3 = in0
	mov	r15 = __NR_kill
	mov	out0 = in1
(p6)	mov	out1 = 10
(p6)	br.cond.spnt.few 1f
	;;
	adds	out0 = -1, in0
	mov	out1 = in1
	br.call.sptk.many rp = nats
	;;
	tnat.nz	p6, p7 = loc2
	cmp.eq	p8, p9 = loc3, in0
	;;
(p7)	cmp.ne	p8, p9 = r0, r0
	;;
(p8)	adds	r8 = 1, r8
	br.cond.sptk.few 2f
	;;
1:	break.i	0x100000
	;;
2:	mov	ar.pfs = loc0
	mov	rp = loc1
	br.ret.sptk.many rp
	.endp	nats
