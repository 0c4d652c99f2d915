// What guests share with the monitor and with a self-virtualised card: the request page
// (crates/hypervisor/src/sidecall/page.rs) and the area of an interface (crates/hypervisor/src/nic/ring.rs), version 1 each.

#ifndef SIDECORE_SHARED_H
#define SIDECORE_SHARED_H

enum { REQUEST_SLOTS = 63, RING_ENTRIES_MAX = 256 };
enum request_kind { NULL_REQUEST, IDENTIFICATION, MAP, UNMAP, TIMER, INTERRUPT, CONSOLE, READ, WRITE, SEND, RECEIVE, OWN, FILL, PURGE };
enum request_status { FREE, REQUESTED, DONE, REFUSED };
enum request_refusal { NOT_SERVED = 6, EMPTY = 5, FULL = 7 };

#define REQUEST_MAGIC 0x4c4c414345444953ul
#define INTERFACE_MAGIC 0x4649565345444953ul

struct slot {
	unsigned long status, kind, arguments[3], result, vector, unused;
};

struct request_page {
	unsigned long magic, version, mode, slots, unused[4];
	struct slot slot[REQUEST_SLOTS];
};

struct descriptor {
	unsigned long address;
	unsigned length, status;
};

struct interface_area {
	unsigned long magic, version, address, entries, unused_0[4];
	unsigned long sent, unused_1[7];
	unsigned long posted, unused_2[7];
	unsigned long wanted, unused_3[0x1e7];
	unsigned long received, unused_4[7];
	unsigned long transmitted, unused_5[23];
	struct descriptor descriptors[2 * RING_ENTRIES_MAX];
};

#endif
