// GPM: averages of the hardware's counters between two samples.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake.h"

struct sample {
	const struct device *of; // NULL before the sample is taken
	long long at;
};

struct metric {
	u32 id;
	int status;
	double value;
	const char *short_name, *long_name, *unit;
};
SIZED(struct metric, 40);

struct metrics {
	u32 version, n;
	struct sample *first, *second;
	struct metric at[210];
};
SIZED(struct metrics, 8424);

struct support {
	u32 version, supported;
};
SIZED(struct support, 8);

// able returns whether the board of a device has GPM.
static int able(const struct device *d) {
	struct world *w = lock();
	if (!w)
		return 0;
	struct gpu *g = gpu_of(w, d);
	int gpm = g && g->gpm;
	unlock();
	return gpm;
}

// The version of this structure is a plain 1, unlike those of most: the driver's
// library refuses the version of go-nvml 0.13.0-1, and so must this one.
EXPORT int nvmlGpmQueryDeviceSupport(struct device *d, struct support *out) {
	int status = enter_device("nvmlGpmQueryDeviceSupport", d);
	if (!status && out->version != 1)
		status = VERSION_MISMATCH;
	if (!status)
		out->supported = (u32)able(d);
	return status;
}

EXPORT int nvmlGpmSampleAlloc(struct sample **out) {
	int status = enter("nvmlGpmSampleAlloc", NULL);
	if (!status && !(*out = calloc(1, sizeof **out)))
		status = MEMORY;
	return status;
}

EXPORT int nvmlGpmSampleFree(struct sample *s) {
	int status = enter("nvmlGpmSampleFree", NULL);
	if (!status)
		free(s);
	return status;
}

static int take(const char *call, const struct device *d, struct sample *s) {
	int status = enter_device(call, d);
	if (!status && !s)
		status = INVALID_ARGUMENT;
	if (!status && !able(d))
		status = NOT_SUPPORTED;
	if (!status)
		*s = (struct sample){d, now()};
	return status;
}

EXPORT int nvmlGpmSampleGet(struct device *d, struct sample *s) { return take("nvmlGpmSampleGet", d, s); }

EXPORT int nvmlGpmMigSampleGet(struct device *d, u32 id, struct sample *s) {
	int status = enter_device("nvmlGpmMigSampleGet", d);
	if (!status && (d->instance != BOARD || id >= MAX_INSTANCES))
		status = INVALID_ARGUMENT;
	return status ? status : take("nvmlGpmMigSampleGet", handle(d->gpu, (int)id), s);
}

// The samples must be of one device, the second one later. The scenario's values
// are the averages between them.
EXPORT int nvmlGpmMetricsGet(struct metrics *m) {
	if (m->version != 1)
		return VERSION_MISMATCH;
	if (!m->first || !m->second || !m->first->of || m->first->of != m->second->of || m->second->at <= m->first->at ||
	    m->n > sizeof m->at / sizeof *m->at)
		return INVALID_ARGUMENT;
	int status = enter("nvmlGpmMetricsGet", m->second->of);
	for (u32 i = 0; i < m->n && !status; i++) {
		char key[TEXT];
		snprintf(key, sizeof key, "gpm.%u", m->at[i].id);
		m->at[i].value = NAN;
		m->at[i].status = reading(m->second->of, key, m->second->at, &m->at[i].value);
	}
	return status;
}
