// The world of a process: the current scenario, and its effects on calls before
// they do anything.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fake.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct world world;
static char path[4096];
static struct stat seen;
static int users; // nvmlInit less nvmlShutdown
static struct device handles[MAX_GPUS][1 + MAX_INSTANCES];

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

static int same(const struct device *a, const struct device *b) {
	return a->gpu == b->gpu && a->instance == b->instance;
}

static double grown(const struct value *v, long long at) {
	return v->carry + v->rate * (double)(at - v->since) * 1e-6;
}

// inherit preserves the growth of values that have the same number in the new
// scenario.
static void inherit(struct world *next, const struct world *old) {
	for (size_t i = 0; i < next->values.n; i++)
		for (size_t j = 0; j < old->values.n; j++) {
			struct value *v = &next->values.at[i], *w = &old->values.at[j];
			if (same(&v->of, &w->of) && v->number == w->number && !strcmp(v->key, w->key))
				v->carry = grown(w, v->since);
		}
}

// refresh reads the scenario again if its file has changed. It returns 0 if the
// file is gone.
static int refresh(void) {
	struct stat s;
	struct world next;
	if (stat(path, &s))
		return 0;
	if (s.st_ino == seen.st_ino && s.st_size == seen.st_size && s.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
	    s.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
		return 1;
	if (!parse(&next, path))
		return 0;
	inherit(&next, &world);
	world_free(&world);
	world = next;
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

// identity are the calls that a rule for all does not affect: without them
// there would be no device to call.
static const char *const identity[] = {
	"nvmlInit", "nvmlShutdown", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlDeviceGetCount",
	"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetUUID",
	"nvmlDeviceGetName", "nvmlDeviceGetPciInfo", "nvmlDeviceGetIndex", "nvmlDeviceGetMinorNumber",
};

static int covers(const struct rule *r, const char *name, const struct device *d) {
	if (r->of.gpu != ANY && (!d || r->of.gpu != d->gpu || (r->of.instance != BOARD && r->of.instance != d->instance)))
		return 0;
	if (strcmp(r->name, "*"))
		return !strcmp(r->name, name);
	for (size_t i = 0; i < sizeof identity / sizeof *identity; i++)
		if (!strcmp(identity[i], name))
			return 0;
	return 1;
}

static const struct rule *find(const struct world *w, int kind, const char *name, const struct device *d) {
	for (size_t i = 0; w && i < w->rules.n; i++)
		if ((int)w->rules.at[i].kind == kind && covers(&w->rules.at[i], name, d))
			return &w->rules.at[i];
	return NULL;
}

int failing(const struct world *w, const char *name, const struct device *d) {
	const struct rule *r = find(w, FAIL, name, d);
	return r ? r->number : SUCCESS;
}

// wait_out waits and hangs as the scenario says, and returns the locked world,
// or NULL.
static struct world *wait_out(const char *call, const struct device *d) {
	struct world *w = lock();
	const struct rule *slow = find(w, SLOW, call, d);
	if (slow) {
		int ms = slow->number;
		unlock();
		pause_ms(ms);
		w = lock();
	}
	while (find(w, HANG, call, d)) {
		unlock();
		pause_ms(5);
		w = lock();
	}
	return w;
}

int enter(const char *call, const struct device *d) {
	struct world *w = wait_out(call, d);
	if (!w)
		return UNINITIALIZED;
	int status = failing(w, call, d);
	struct gpu *g = d ? gpu_of(w, d) : NULL;
	if (!status && d && (!g || g->lost))
		status = GPU_IS_LOST;
	else if (!status && d && d->instance != BOARD && !instance_of(w, d))
		status = NOT_FOUND;
	unlock();
	return status;
}

int enter_device(const char *call, const struct device *d) {
	const char *at = (const char *)d, *first = (const char *)handles;
	if (at < first || at >= first + sizeof handles || (size_t)(at - first) % sizeof *d)
		return INVALID_ARGUMENT;
	return enter(call, d);
}

int reading(const struct device *d, const char *key, long long at, double *number) {
	struct world *w = lock();
	if (!w)
		return UNINITIALIZED;
	int status = NOT_SUPPORTED;
	for (size_t i = 0; i < w->values.n; i++) {
		struct value *v = &w->values.at[i];
		if (same(&v->of, d) && !strcmp(v->key, key)) {
			*number = v->number + grown(v, at);
			status = SUCCESS;
		}
	}
	const struct rule *r = find(w, FAIL, key, d);
	if (r && strcmp(r->name, "*"))
		status = r->number;
	unlock();
	return status;
}

int reading_now(const struct device *d, const char *key, double *number) { return reading(d, key, now(), number); }

struct device *handle(int gpu, int instance) {
	struct device *d = &handles[gpu][1 + instance];
	d->gpu = gpu;
	d->instance = instance;
	return d;
}

struct gpu *gpu_of(const struct world *w, const struct device *d) {
	for (size_t i = 0; i < w->gpus.n; i++)
		if (w->gpus.at[i].index == d->gpu)
			return &w->gpus.at[i];
	return NULL;
}

struct instance *instance_of(const struct world *w, const struct device *d) {
	for (size_t i = 0; i < w->instances.n; i++)
		if (w->instances.at[i].gpu == d->gpu && w->instances.at[i].id == d->instance)
			return &w->instances.at[i];
	return NULL;
}

int put(const char *text, char *buffer, u32 length) {
	if (!buffer)
		return INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return INSUFFICIENT_SIZE;
	strcpy(buffer, text);
	return SUCCESS;
}

// start counts a user. The first one sets the scenario.
static int start(void) {
	const char *file = getenv("KPULSE_FAKE_NVML_SCENARIO");
	if (!file || strlen(file) >= sizeof path) {
		fputs("fake NVML: KPULSE_FAKE_NVML_SCENARIO names no scenario; set it to the path of one\n", stderr);
		return DRIVER_NOT_LOADED;
	}
	pthread_mutex_lock(&mutex);
	if (users == 0) {
		strcpy(path, file);
		memset(&seen, 0, sizeof seen);
		world_free(&world);
	}
	int found = refresh();
	users += found;
	pthread_mutex_unlock(&mutex);
	return found ? SUCCESS : DRIVER_NOT_LOADED;
}

static void stop(void) {
	pthread_mutex_lock(&mutex);
	users -= users > 0;
	pthread_mutex_unlock(&mutex);
}

EXPORT int nvmlInitWithFlags(u32 flags) {
	(void)flags;
	int status = start();
	if (!status && (status = enter("nvmlInit", NULL)))
		stop();
	return status;
}

EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT int nvmlShutdown(void) {
	pthread_mutex_lock(&mutex);
	int in_use = users > 0;
	pthread_mutex_unlock(&mutex);
	if (!in_use)
		return UNINITIALIZED;
	int status = enter("nvmlShutdown", NULL);
	if (status && status != UNINITIALIZED) // shutdown works without a scenario
		return status;
	stop();
	return SUCCESS;
}
