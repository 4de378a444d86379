/* What does DPDK's ring carry between two CPUs, if frames are copied in and out of it and looked at?
 *
 * In: the two CPUs, bytes of a frame (a multiple of 8), frames of a batch, slots, milliseconds. Out: Mpps of each slice of 2 ms, one a line.
 * Each frame has a number first and a checksum last, as those of `kvmscope bench channel` have; the receiver looks at both.
 * Source: rte_ring_elem.h of DPDK 22.11: elements of any multiple of 4 bytes are copied into the ring and out of it.
 */
#include <rte_eal.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_ring_elem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BATCH 1024
#define MOST_BYTES 9216
#define SLICE_MS 2

static struct rte_ring *ring;
static unsigned words, batch;
static volatile int is_over;
static uint64_t received, wrong, slice_ends;

static uint64_t frames_out[MOST_BATCH * MOST_BYTES / 8], frames_in[MOST_BATCH * MOST_BYTES / 8];

static int send_frames(void *unused)
{
	uint64_t next = 0, pattern = 0;
	unsigned i, done = batch;

	(void)unused;
	for (i = 0; i < batch * words; i++)
		frames_out[i] = (i % words + 1) * 0x9e3779b97f4a7c15;
	for (i = 1; i + 1 < words; i++)
		pattern ^= frames_out[i];
	while (!is_over) {
		if (done == batch) {
			for (i = 0; i < batch; i++, next++) {
				frames_out[i * words] = next;
				frames_out[i * words + words - 1] = pattern ^ next;
			}
			done = 0;
		}
		done += rte_ring_sp_enqueue_burst_elem(ring, frames_out + done * words, 8 * words, batch - done, NULL);
	}
	return 0;
}

static int receive_frames(void *until)
{
	uint64_t next = 0, slice = rte_get_tsc_hz() / 1000 * SLICE_MS, counted = 0;
	unsigned i, word, got;

	slice_ends = rte_rdtsc() + slice;
	for (;;) {
		uint64_t now = rte_rdtsc();

		if (now >= slice_ends) {
			printf("%.3f\n", (received - counted) * (rte_get_tsc_hz() / 1e6) / (double)(slice + now - slice_ends));
			counted = received;
			slice_ends = now + slice;
			if (now >= *(uint64_t *)until)
				break;
		}
		got = rte_ring_sc_dequeue_burst_elem(ring, frames_in, 8 * words, batch, NULL);
		for (i = 0; i < got; i++, next++) {
			uint64_t *frame = frames_in + i * words, sum = 0;

			for (word = 0; word < words; word++)
				sum ^= frame[word];
			wrong += sum != 0 || frame[0] != next;
		}
		received += got;
	}
	is_over = 1;
	return 0;
}

int main(int argc, char **argv)
{
	char cpus[64];
	char *eal[] = {"rte_ring", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m", "64", "-l", cpus};
	uint64_t until;

	if (argc != 7) {
		fprintf(stderr, "usage: %s CPU CPU BYTES BATCH SLOTS MILLISECONDS\n", argv[0]);
		return 2;
	}
	snprintf(cpus, sizeof(cpus), "%s,%s", argv[1], argv[2]);
	words = atoi(argv[3]) / 8;
	batch = atoi(argv[4]);
	if (words < 2 || words * 8 > MOST_BYTES || batch < 1 || batch > MOST_BATCH)
		return 2;
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return 1;
	/* A power of two of slots, as ours has; one of them stays empty. */
	ring = rte_ring_create_elem("frames", 8 * words, atoi(argv[5]) + 1, SOCKET_ID_ANY,
				    RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (ring == NULL)
		return 1;
	until = rte_rdtsc() + rte_get_tsc_hz() / 1000 * atoi(argv[6]);
	rte_eal_mp_remote_launch(send_frames, NULL, SKIP_MAIN);
	receive_frames(&until);
	rte_eal_mp_wait_lcore();
	rte_eal_cleanup();
	if (wrong > 0) {
		fprintf(stderr, "%lu frames did not arrive as they were sent\n", wrong);
		return 1;
	}
	return 0;
}
