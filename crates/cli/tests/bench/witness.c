/*
 * Cycles of an operation, measured by another program in another language: the middle of many rows of operations,
 * less the middle of as many empty rows. Prints one number.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

enum { ROWS = 4001, OPERATIONS = 200 };

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

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t middle(const char *what)
{
	static uint64_t rows[ROWS];
	int kind = !strcmp(what, "cpuid") ? 1 : !strcmp(what, "rdtsc") ? 2 : !strcmp(what, "syscall") ? 3 : 0;
	int operations = kind == 1 ? 4 : OPERATIONS;
	for (int row = 0; row < ROWS; row++) {
		uint64_t since = begin();
		for (int i = 0; i < operations; i++) {
			uint32_t a = 0, b, c = 0, d;
			if (kind == 1)
				__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
			else if (kind == 2)
				__asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
			else if (kind == 3)
				syscall(SYS_getpid);
			else
				__asm__ volatile("");
		}
		rows[row] = (end() - since) * 1000 / operations;
	}
	qsort(rows, ROWS, sizeof(rows[0]), ascending);
	return rows[ROWS / 2];
}

int main(int count, char **words)
{
	if (count != 2)
		return 2;
	uint64_t empty = middle("empty"), whole = middle(words[1]);
	printf("%.1f\n", whole > empty ? (whole - empty) / 1000.0 : 0.0);
	return 0;
}
