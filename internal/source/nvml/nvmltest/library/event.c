// Events: each set returns the XIDs of the scenario once, in order.
#include <stdlib.h>

#include "fake.h"

enum { XID = 8 }; // NVML's bit for critical XIDs

struct set {
	u64 types[MAX_GPUS];   // registered event types, by board
	size_t seen[MAX_GPUS]; // returned XIDs, by board
};

struct event {
	struct device *device;
	u64 type, data;
	u32 instance, compute;
};
SIZED(struct event, 32);

EXPORT int nvmlEventSetCreate(struct set **out) {
	int status = enter("nvmlEventSetCreate", NULL);
	if (!status && !(*out = calloc(1, sizeof **out)))
		status = MEMORY;
	return status;
}

EXPORT int nvmlEventSetFree(struct set *set) {
	int status = enter("nvmlEventSetFree", NULL);
	if (!status)
		free(set);
	return status;
}

EXPORT int nvmlDeviceGetSupportedEventTypes(struct device *d, u64 *types) {
	int status = enter_device("nvmlDeviceGetSupportedEventTypes", d);
	if (!status)
		*types = XID;
	return status;
}

EXPORT int nvmlDeviceRegisterEvents(struct device *d, u64 types, struct set *set) {
	int status = enter_device("nvmlDeviceRegisterEvents", d);
	if (!status && (d->instance != BOARD || types & ~(u64)XID))
		status = NOT_SUPPORTED;
	if (!status)
		set->types[d->gpu] |= types;
	return status;
}

static int lost(const struct world *w, const struct set *set) {
	for (size_t i = 0; i < w->gpus.n; i++)
		if (w->gpus.at[i].lost && set->types[w->gpus.at[i].index])
			return 1;
	return 0;
}

// next stores the first XID of a registered device that was not returned before. It
// returns TIMEOUT if there is none. As in NVML, a lost registered device ends every
// wait at once.
static int next(const struct world *w, struct set *set, struct event *out) {
	size_t n[MAX_GPUS] = {0};
	for (size_t i = 0; i < w->xids.n; i++) {
		struct xid *x = &w->xids.at[i];
		int gpu = x->of.gpu;
		struct instance *in = instance_of(w, &x->of);
		if (n[gpu]++ < set->seen[gpu] || !(set->types[gpu] & XID))
			continue;
		set->seen[gpu]++;
		*out = (struct event){handle(gpu, BOARD), XID, x->code, (u32)x->of.instance, in ? (u32)in->compute : (u32)NO_INSTANCE};
		return SUCCESS;
	}
	return lost(w, set) ? GPU_IS_LOST : TIMEOUT;
}

EXPORT int nvmlEventSetWait_v2(struct set *set, struct event *out, u32 ms) {
	int status = enter("nvmlEventSetWait", NULL);
	long long end = now() + ms * 1000LL;
	while (!status) {
		struct world *w = lock();
		if (!w)
			return UNINITIALIZED;
		status = failing(w, "nvmlEventSetWait", NULL);
		if (!status)
			status = next(w, set, out);
		unlock();
		if (status != TIMEOUT || now() >= end)
			break;
		pause_ms(5);
		status = SUCCESS;
	}
	return status;
}

EXPORT int nvmlEventSetWait(struct set *set, struct event *out, u32 ms) { return nvmlEventSetWait_v2(set, out, ms); }
