// Reads scenarios, which Scenario.Text in Go writes. A TARGET is a board, such as
// 3, or one of its GPU instances by id, such as 3/7; RATE is per second.
//
//	driver VERSION
//	gpu INDEX UUID BUSID NAME…
//	gpm INDEX
//	lost INDEX
//	instance INDEX/ID COMPUTE UUID SLICES MIB NAME…
//	value TARGET KEY NUMBER [RATE]
//	fail CALL RESULT [TARGET]
//	slow CALL MILLISECONDS [TARGET]
//	hang CALL [TARGET]
//	xid TARGET CODE
//	process TARGET compute|graphics|mps PID BYTES
//	# a comment
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

// add appends a zeroed element to a list and returns it.
#define add(list)                                                                             \
	((list).at = grow((list).at, sizeof *(list).at, (list).n), (list).n++, (list).at + (list).n - 1)

static void *grow(void *at, size_t size, size_t n) {
	char *bigger = realloc(at, size * (n + 1));
	if (!bigger)
		abort();
	memset(bigger + size * n, 0, size);
	return bigger;
}

// target reads "3" as board 3 and "3/7" as its GPU instance 7.
static int target(const char *text, struct device *of) {
	int board = 0, instance = 0;
	of->instance = BOARD;
	sscanf(text, "%d%n/%d%n", &of->gpu, &board, &of->instance, &instance);
	int end = instance ? instance : board;
	return end && !text[end] && of->gpu >= 0 && of->gpu < MAX_GPUS && of->instance >= BOARD && of->instance < MAX_INSTANCES;
}

// target_or_any is target for a word that may be missing.
static int target_or_any(const char *text, struct device *of) {
	of->gpu = ANY;
	return !*text || target(text, of);
}

static int number(const char *text, double *out) {
	char *end;
	*out = strtod(text, &end);
	return end != text && !*end;
}

static int read_gpu(struct world *w, const char *line) {
	struct gpu *g = add(w->gpus);
	return sscanf(line, "gpu %d %95s %95s %95[^\n]", &g->index, g->uuid, g->bus, g->name) == 4 && g->index >= 0 &&
	       g->index < MAX_GPUS;
}

static int read_instance(struct world *w, const char *line) {
	struct instance *i = add(w->instances);
	return sscanf(line, "instance %d/%d %d %95s %u %llu %95[^\n]", &i->gpu, &i->id, &i->compute, i->uuid, &i->slices,
	              &i->mib, i->name) == 7 && i->id >= 0 && i->id < MAX_INSTANCES;
}

static int read_value(struct world *w, char (*word)[TEXT], int words) {
	struct value *v = add(w->values);
	strcpy(v->key, word[2]);
	v->since = now();
	return (words == 4 || words == 5) && target(word[1], &v->of) && number(word[3], &v->number) &&
	       (words == 4 || number(word[4], &v->rate));
}

static int read_rule(struct world *w, char (*word)[TEXT], int words) {
	struct rule *r = add(w->rules);
	strcpy(r->name, word[1]);
	if (!strcmp(word[0], "hang")) {
		r->kind = HANG;
		return words >= 2 && words <= 3 && target_or_any(word[2], &r->of);
	}
	r->kind = !strcmp(word[0], "fail") ? FAIL : SLOW;
	r->number = r->kind == FAIL ? result(word[2]) : atoi(word[2]);
	return words >= 3 && words <= 4 && r->number > 0 && target_or_any(word[3], &r->of);
}

static int read_xid(struct world *w, char (*word)[TEXT], int words) {
	struct xid *x = add(w->xids);
	x->code = strtoull(word[2], NULL, 10);
	return words == 3 && target(word[1], &x->of);
}

static int read_process(struct world *w, char (*word)[TEXT], int words) {
	struct process *p = add(w->processes);
	strcpy(p->kind, word[2]);
	p->pid = (u32)strtoul(word[3], NULL, 10);
	p->bytes = strtoull(word[4], NULL, 10);
	return words == 5 && target(word[1], &p->of);
}

// mark reads the lines lost and gpm.
static int mark(struct world *w, char (*word)[TEXT], int words) {
	struct device of;
	struct gpu *g = words == 2 && target(word[1], &of) ? gpu_of(w, &of) : NULL;
	if (g)
		*(strcmp(word[0], "gpm") ? &g->lost : &g->gpm) = 1;
	return g != NULL;
}

static int read_line(struct world *w, const char *line) {
	char word[6][TEXT] = {""};
	int words = sscanf(line, "%95s %95s %95s %95s %95s %95s", word[0], word[1], word[2], word[3], word[4], word[5]);
	if (words <= 0 || word[0][0] == '#')
		return 1;
	if (!strcmp(word[0], "driver"))
		return strcpy(w->driver, word[1]), words == 2;
	if (!strcmp(word[0], "gpu"))
		return read_gpu(w, line);
	if (!strcmp(word[0], "instance"))
		return read_instance(w, line);
	if (!strcmp(word[0], "value"))
		return read_value(w, word, words);
	if (!strcmp(word[0], "fail") || !strcmp(word[0], "slow") || !strcmp(word[0], "hang"))
		return read_rule(w, word, words);
	if (!strcmp(word[0], "lost") || !strcmp(word[0], "gpm"))
		return mark(w, word, words);
	if (!strcmp(word[0], "xid"))
		return read_xid(w, word, words);
	return !strcmp(word[0], "process") && read_process(w, word, words);
}

int parse(struct world *w, const char *path) {
	char line[1024];
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	memset(w, 0, sizeof *w);
	for (int n = 1; fgets(line, sizeof line, file); n++) {
		if (read_line(w, line))
			continue;
		fprintf(stderr, "fake NVML: %s:%d: cannot read %s", path, n, line);
		abort();
	}
	fclose(file);
	return 1;
}

void world_free(struct world *w) {
	free(w->gpus.at);
	free(w->instances.at);
	free(w->values.at);
	free(w->rules.at);
	free(w->xids.at);
	free(w->processes.at);
	memset(w, 0, sizeof *w);
}
