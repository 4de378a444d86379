/* DPDK's ring of frames, for Rust: rte_ring_elem.h of DPDK 22.11 copies elements of any multiple of 4 bytes in and out. */
#include <rte_eal.h>
#include <rte_ring_elem.h>

static struct rte_ring *ring;
static unsigned frame_bytes;

int rte_make(unsigned slots, unsigned bytes)
{
	char *eal[] = {"rings", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m", "64", "-l", "0"};

	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return -1;
	frame_bytes = bytes;
	ring = rte_ring_create_elem("frames", bytes, slots, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	return ring == NULL ? -1 : 0;
}

unsigned rte_push(const void *frames, unsigned count)
{
	return rte_ring_sp_enqueue_burst_elem(ring, frames, frame_bytes, count, NULL);
}

unsigned rte_pop(void *frames, unsigned count)
{
	return rte_ring_sc_dequeue_burst_elem(ring, frames, frame_bytes, count, NULL);
}
