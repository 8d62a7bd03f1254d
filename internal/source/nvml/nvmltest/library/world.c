// The scenario, and its effects on calls before they do anything.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fake.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct world world;
static const char *path;
static struct stat seen;
static long long begun; // from when values grow
static int users;       // nvmlInit less nvmlShutdown
static struct device handles[MAX_GPUS];

long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

void pause_ms(int ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&t, &t))
		;
}

static int read_line(const char *line) {
	struct gpu *g = &world.gpu[world.gpus % MAX_GPUS];
	struct value *v = &world.value[world.values % MAX_VALUES];
	struct rule *r = &world.rule[world.rules % MAX_RULES];
	if (sscanf(line, "gpu %95s %31s %95[^\n]", g->uuid, g->bus, g->name) == 3)
		return ++world.gpus <= MAX_GPUS;
	if (sscanf(line, "value %d %31s %lf %lf", &v->gpu, v->key, &v->number, &v->rate) == 4)
		return ++world.values <= MAX_VALUES;
	return sscanf(line, "rule %7s %63s %d %d", r->kind, r->call, &r->gpu, &r->number) == 4 && ++world.rules <= MAX_RULES;
}

// refresh reads the scenario again if its file has changed. It returns 0 if the file is gone.
static int refresh(void) {
	struct stat s;
	char line[512];
	FILE *file;
	if (!path || stat(path, &s))
		return 0;
	if (s.st_ino == seen.st_ino && s.st_size == seen.st_size && s.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
	    s.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
		return 1;
	if (!(file = fopen(path, "re")))
		return 0;
	world.gpus = world.values = world.rules = 0;
	while (fgets(line, sizeof line, file))
		if (!read_line(line)) {
			fprintf(stderr, "fake NVML: %s: cannot read %s", path, line);
			abort();
		}
	fclose(file);
	seen = s;
	return 1;
}

struct world *lock(void) {
	pthread_mutex_lock(&mutex);
	if (users > 0 && refresh())
		return &world;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

void unlock(void) { pthread_mutex_unlock(&mutex); }

static const struct rule *find(const struct world *w, const char *kind, const char *call, const struct device *d) {
	for (size_t i = 0; w && i < w->rules; i++) {
		const struct rule *r = &w->rule[i];
		if (!strcmp(r->kind, kind) && !strcmp(r->call, call) && (r->gpu < 0 || (d && r->gpu == d->gpu)))
			return r;
	}
	return NULL;
}

static int number(const struct world *w, int gpu, const char *key, long long at, double *out) {
	for (size_t i = 0; i < w->values; i++)
		if (w->value[i].gpu == gpu && !strcmp(w->value[i].key, key)) {
			*out = w->value[i].number + w->value[i].rate * (double)(at - begun) * 1e-6;
			return SUCCESS;
		}
	return NOT_SUPPORTED;
}

int enter(const char *call, const struct device *d) {
	struct world *w = lock();
	const struct rule *r;
	double lost;
	while (find(w, "hang", call, d)) {
		unlock();
		pause_ms(5);
		w = lock();
	}
	if (!w)
		return UNINITIALIZED;
	int status = SUCCESS;
	if ((r = find(w, "fail", call, d)))
		status = r->number;
	else if (d && ((size_t)d->gpu >= w->gpus || !number(w, d->gpu, "lost", 0, &lost)))
		status = GPU_IS_LOST;
	unlock();
	return status;
}

int reading(const struct device *d, const char *key, long long at, double *out) {
	struct world *w = lock();
	if (!w)
		return UNINITIALIZED;
	int status = number(w, d->gpu, key, at, out);
	unlock();
	return status;
}

int get(const char *call, const struct device *d, const char *const *keys, size_t n, double *numbers) {
	int status = enter(call, d);
	for (size_t i = 0; i < n && !status; i++)
		status = reading(d, keys[i], now(), &numbers[i]);
	return status;
}

struct device *handle(int gpu) {
	handles[gpu].gpu = gpu;
	return &handles[gpu];
}

// use counts a user more or less. The first one sets the scenario.
static int use(int more) {
	pthread_mutex_lock(&mutex);
	if (users == 0) {
		path = getenv("KPULSE_FAKE_NVML_SCENARIO");
		memset(&seen, 0, sizeof seen);
		begun = now();
	}
	int found = refresh();
	if (users + more >= 0 && (found || more < 0))
		users += more;
	pthread_mutex_unlock(&mutex);
	return found ? SUCCESS : DRIVER_NOT_LOADED;
}

EXPORT int nvmlInit_v2(void) {
	int status = use(1);
	if (!status && (status = enter("nvmlInit_v2", NULL)))
		use(-1);
	return status;
}

EXPORT int nvmlShutdown(void) {
	int status = enter("nvmlShutdown", NULL);
	if (!status)
		use(-1);
	return status;
}
