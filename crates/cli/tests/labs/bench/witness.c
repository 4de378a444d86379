/*
 * Cycles of an operation, measured by another program in another language: the middle of many rows of operations,
 * less the middle of as many empty rows. Prints one number.
 *
 * A turn of the loop has a jump to the operation and one back, as the bench has: a processor overlaps RDTSC with
 * whatever stands around it, and that is not what is compared.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4001 };

static inline uint64_t begin(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) :: "memory");
	return (uint64_t)high << 32 | low;
}

static inline uint64_t end(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtscp; lfence" : "=a"(low), "=d"(high) :: "rcx", "memory");
	return (uint64_t)high << 32 | low;
}

/* So many turns, each with that operation. */
#define TURNS(count, operation) do { \
		uint64_t left = (count); \
		__asm__ volatile("lea 2f(%%rip), %%r9\n" \
				 "1: jmp *%%r9\n" \
				 "2: " operation "\n" \
				 "jmp 3f\n" \
				 "3: dec %0\n" \
				 "jnz 1b\n" \
				 : "+r"(left) :: "rax", "rbx", "rcx", "rdx", "r9", "r11", "cc", "memory"); \
	} while (0)

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static double middle(const char *what, uint64_t turns)
{
	static uint64_t rows[ROWS];
	for (int row = 0; row < ROWS; row++) {
		uint64_t since = begin();
		switch (what[0]) {
		case 'c':
			TURNS(turns, "xor %%eax, %%eax; xor %%ecx, %%ecx; cpuid");
			break;
		case 'r':
			TURNS(turns, "rdtsc");
			break;
		case 's': /* getpid */
			TURNS(turns, "mov $39, %%eax; syscall");
			break;
		default:
			TURNS(turns, "");
		}
		rows[row] = end() - since;
	}
	qsort(rows, ROWS, sizeof(rows[0]), ascending);
	return (double)rows[ROWS / 2] / turns;
}

int main(int count, char **words)
{
	if (count != 2 || !strstr("cpuid rdtsc syscall", words[1]))
		return 2;
	uint64_t turns = words[1][0] == 'c' ? 4 : 200;
	double empty = middle("empty", turns), whole = middle(words[1], turns);
	printf("%.2f\n", whole > empty ? whole - empty : 0.0);
	return 0;
}
