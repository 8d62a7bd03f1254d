// The calls of the library that the program makes, except for those that begin and end it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

EXPORT const char *nvmlErrorString(int number) { return number == NOT_SUPPORTED ? "Not Supported" : "an error"; }

// put copies text into a caller's buffer.
static int put(const char *text, char *buffer, u32 length) {
	if (strlen(text) >= length)
		return INSUFFICIENT_SIZE;
	strcpy(buffer, text);
	return SUCCESS;
}

EXPORT int nvmlSystemGetDriverVersion(char *out, u32 length) {
	int status = enter("nvmlSystemGetDriverVersion", NULL);
	return status ? status : put("580.105.08", out, length);
}

EXPORT int nvmlSystemGetNVMLVersion(char *out, u32 length) {
	int status = enter("nvmlSystemGetNVMLVersion", NULL);
	return status ? status : put("13.580.105.08", out, length);
}

EXPORT int nvmlDeviceGetCount_v2(u32 *count) {
	int status = enter("nvmlDeviceGetCount_v2", NULL);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	*count = (u32)w->gpus;
	unlock();
	return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(u32 index, struct device **out) {
	if (index >= MAX_GPUS)
		return INVALID_ARGUMENT;
	*out = handle((int)index);
	return enter("nvmlDeviceGetHandleByIndex_v2", *out);
}

// identify copies a text of a device, at an offset in its entry.
static int identify(const char *call, const struct device *d, size_t offset, char *out, u32 length) {
	int status = enter(call, d);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	status = put((char *)&w->gpu[d->gpu] + offset, out, length);
	unlock();
	return status;
}

EXPORT int nvmlDeviceGetUUID(struct device *d, char *out, u32 length) {
	return identify("nvmlDeviceGetUUID", d, offsetof(struct gpu, uuid), out, length);
}

EXPORT int nvmlDeviceGetName(struct device *d, char *out, u32 length) {
	return identify("nvmlDeviceGetName", d, offsetof(struct gpu, name), out, length);
}

struct pci {
	char legacy[16];
	u32 domain, bus, device, id, subsystem;
	char address[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *out) {
	return identify("nvmlDeviceGetPciInfo_v3", d, offsetof(struct gpu, bus), out->address, sizeof out->address);
}

// NUMBER defines a call that returns one number.
#define NUMBER(call, type, key)                                       \
	EXPORT int call(struct device *d, type *out) {                    \
		const char *keys[] = {key};                                   \
		double number;                                                \
		int status = get(#call, d, keys, 1, &number);                 \
		return status ? status : (*out = (type)number, SUCCESS);      \
	}

NUMBER(nvmlDeviceGetPowerUsage, u32, "power")
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, "power_limit")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, u32, "enforced_limit")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, "energy")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "reasons")

// SELECTED defines a call whose argument chooses the number, as in clock.1.
#define SELECTED(call, type, key)                                     \
	EXPORT int call(struct device *d, u32 which, type *out) {         \
		char text[32];                                                \
		const char *keys[] = {text};                                  \
		double number;                                                \
		snprintf(text, sizeof text, key ".%u", which);                \
		int status = get(#call, d, keys, 1, &number);                 \
		return status ? status : (*out = (type)number, SUCCESS);      \
	}

SELECTED(nvmlDeviceGetClockInfo, u32, "clock")
SELECTED(nvmlDeviceGetTemperature, u32, "temperature")

EXPORT int nvmlDeviceGetUtilizationRates(struct device *d, u32 out[2]) {
	static const char *const keys[] = {"busy", "copying"};
	double n[2];
	int status = get("nvmlDeviceGetUtilizationRates", d, keys, 2, n);
	return status ? status : (out[0] = (u32)n[0], out[1] = (u32)n[1], SUCCESS);
}

EXPORT int nvmlDeviceGetNvLinkState(struct device *d, u32 link, u32 *up) {
	static const char *const keys[] = {"links"};
	double number;
	int status = get("nvmlDeviceGetNvLinkState", d, keys, 1, &number);
	*up = 1;
	return !status && link >= (u32)number ? INVALID_ARGUMENT : status;
}

struct field_value {
	u32 id, scope;
	long long microseconds, latency;
	u32 type;
	int status;
	u64 value;
};

// The key of a field is field.ID. What counts for each link counts on the first.
EXPORT int nvmlDeviceGetFieldValues(struct device *d, int n, struct field_value *values) {
	int status = enter("nvmlDeviceGetFieldValues", d);
	long long at = now();
	for (int i = 0; i < n && !status; i++) {
		struct field_value *v = &values[i];
		char key[32];
		double number = 0;
		snprintf(key, sizeof key, "field.%u", v->id);
		v->status = reading(d, key, at, &number);
		v->type = 3; // unsigned long long
		v->microseconds = at;
		v->value = v->scope == 0 || v->scope == (u32)-1 ? (u64)number : 0;
	}
	return status;
}

struct sample {
	const struct device *of; // NULL before the sample is taken
	long long at;
};

struct metrics {
	u32 version, n;
	struct sample *first, *second;
	struct metric {
		u32 id;
		int status;
		double value;
		const char *texts[3];
	} at[];
};

EXPORT int nvmlGpmQueryDeviceSupport(struct device *d, u32 out[2]) {
	static const char *const keys[] = {"gpm"};
	double number;
	int status = out[0] == 1 ? get("nvmlGpmQueryDeviceSupport", d, keys, 1, &number) : VERSION_MISMATCH;
	return status ? status : (out[1] = (u32)number, SUCCESS);
}

EXPORT int nvmlGpmSampleAlloc(struct sample **out) {
	*out = calloc(1, sizeof **out);
	return enter("nvmlGpmSampleAlloc", NULL);
}

EXPORT int nvmlGpmSampleFree(struct sample *s) { return free(s), SUCCESS; }

EXPORT int nvmlGpmSampleGet(struct device *d, struct sample *s) {
	int status = enter("nvmlGpmSampleGet", d);
	return status ? status : (*s = (struct sample){d, now()}, SUCCESS);
}

// The samples must be of one device, the second one later. The values are the averages between them.
EXPORT int nvmlGpmMetricsGet(struct metrics *m) {
	if (m->version != 1)
		return VERSION_MISMATCH;
	if (!m->first->of || m->first->of != m->second->of || m->second->at <= m->first->at)
		return INVALID_ARGUMENT;
	int status = enter("nvmlGpmMetricsGet", m->second->of);
	for (u32 i = 0; i < m->n && !status; i++) {
		char key[32];
		snprintf(key, sizeof key, "gpm.%u", m->at[i].id);
		m->at[i].value = NAN;
		m->at[i].status = reading(m->second->of, key, m->second->at, &m->at[i].value);
	}
	return status;
}

// A set returns each XID of the scenario, a value xid, once, in order, also those of before the
// registration.
struct set {
	size_t seen;
};

struct event {
	struct device *device;
	u64 type, data;
	u32 instance, compute;
};

EXPORT int nvmlEventSetCreate(struct set **out) {
	*out = calloc(1, sizeof **out);
	return enter("nvmlEventSetCreate", NULL);
}

EXPORT int nvmlEventSetFree(struct set *s) { return free(s), SUCCESS; }

EXPORT int nvmlDeviceRegisterEvents(struct device *d, u64 types, struct set *s) {
	(void)types, (void)s;
	return enter("nvmlDeviceRegisterEvents", d);
}

static int next(const struct world *w, struct set *s, struct event *out) {
	size_t n = 0;
	for (size_t i = 0; i < w->values; i++)
		if (!strcmp(w->value[i].key, "xid") && n++ == s->seen) {
			s->seen++;
			*out = (struct event){handle(w->value[i].gpu), 8, (u64)w->value[i].number, (u32)-1, (u32)-1};
			return SUCCESS;
		}
	return TIMEOUT;
}

EXPORT int nvmlEventSetWait_v2(struct set *s, struct event *out, u32 ms) {
	int status = enter("nvmlEventSetWait_v2", NULL);
	for (long long end = now() + ms * 1000LL; !status; pause_ms(5)) {
		struct world *w = lock();
		if (!w)
			return UNINITIALIZED;
		status = next(w, s, out);
		unlock();
		if (status != TIMEOUT || now() >= end)
			return status;
		status = SUCCESS;
	}
	return status;
}

EXPORT int nvmlEventSetWait(struct set *s, struct event *out, u32 ms) { return nvmlEventSetWait_v2(s, out, ms); }

struct process_info {
	u32 pid;
	u64 bytes;
	u32 instance, compute;
};

// PROCESSES defines a list of at most one process.
#define PROCESSES(call, kind)                                                         \
	EXPORT int call(struct device *d, u32 *count, struct process_info *out) {         \
		static const char *const keys[] = {kind "_pid", kind "_bytes"};               \
		double n[2];                                                                  \
		u32 room = *count;                                                            \
		int status = get(#call, d, keys, 2, n);                                       \
		*count = status ? 0 : 1;                                                      \
		if (!status && room > 0)                                                      \
			*out = (struct process_info){(u32)n[0], (u64)n[1], (u32)-1, (u32)-1};     \
		return status == NOT_SUPPORTED ? SUCCESS : status ? status : room ? SUCCESS : INSUFFICIENT_SIZE; \
	}

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
