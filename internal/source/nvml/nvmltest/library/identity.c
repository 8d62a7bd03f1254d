// Calls that find and identify devices.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fake.h"

struct pci {
	char legacy[16];
	u32 domain, bus, device, id, subsystem;
	char address[32];
};
SIZED(struct pci, 68);

EXPORT int nvmlSystemGetDriverVersion(char *version, u32 length) {
	int status = enter("nvmlSystemGetDriverVersion", NULL);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	status = put(w->driver, version, length);
	unlock();
	return status;
}

EXPORT int nvmlSystemGetNVMLVersion(char *version, u32 length) {
	char text[TEXT + 3] = "13.";
	int status = enter("nvmlSystemGetNVMLVersion", NULL);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	strcat(text, w->driver);
	unlock();
	return put(text, version, length);
}

EXPORT int nvmlDeviceGetCount_v2(u32 *count) {
	int status = enter("nvmlDeviceGetCount", NULL);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	*count = (u32)w->gpus.n;
	unlock();
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCount(u32 *count) { return nvmlDeviceGetCount_v2(count); }

// find stores the handle of the first board for which is returns true.
static int find(const char *call, int (*is)(const struct gpu *, const void *), const void *what, struct device **out) {
	struct device *d = NULL;
	struct world *w = lock();
	if (!w)
		return UNINITIALIZED;
	for (size_t i = 0; i < w->gpus.n && !d; i++)
		if (is(&w->gpus.at[i], what))
			d = handle(w->gpus.at[i].index, BOARD);
	unlock();
	int status = enter(call, d);
	if (!status && d)
		*out = d;
	return status ? status : d ? SUCCESS : NOT_FOUND;
}

static int has_index(const struct gpu *g, const void *index) { return (u32)g->index == *(const u32 *)index; }
static int has_uuid(const struct gpu *g, const void *uuid) { return !strcmp(g->uuid, uuid); }

// has_bus compares from the end, because the domain has four or eight digits.
static int has_bus(const struct gpu *g, const void *bus) {
	size_t n = strlen(bus), all = strlen(g->bus);
	return n >= 12 && n <= all && !strcasecmp(g->bus + all - n, bus);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(u32 index, struct device **out) {
	int status = find("nvmlDeviceGetHandleByIndex", has_index, &index, out);
	return status == NOT_FOUND ? INVALID_ARGUMENT : status;
}

EXPORT int nvmlDeviceGetHandleByIndex(u32 index, struct device **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **out) {
	return find("nvmlDeviceGetHandleByUUID", has_uuid, uuid, out);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct device **out) {
	return find("nvmlDeviceGetHandleByPciBusId", has_bus, bus, out);
}

EXPORT int nvmlDeviceGetHandleByPciBusId(const char *bus, struct device **out) {
	return nvmlDeviceGetHandleByPciBusId_v2(bus, out);
}

// describe copies the entries of a device.
static int describe(const char *call, const struct device *d, struct gpu *g, struct instance *i) {
	int status = enter_device(call, d);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	struct gpu *gpu = gpu_of(w, d);
	struct instance *instance = instance_of(w, d);
	if (gpu)
		*g = *gpu;
	if (instance)
		*i = *instance;
	unlock();
	return gpu ? SUCCESS : GPU_IS_LOST;
}

EXPORT int nvmlDeviceGetUUID(struct device *d, char *uuid, u32 length) {
	struct gpu g;
	struct instance i;
	int status = describe("nvmlDeviceGetUUID", d, &g, &i);
	return status ? status : put(d->instance == BOARD ? g.uuid : i.uuid, uuid, length);
}

EXPORT int nvmlDeviceGetName(struct device *d, char *name, u32 length) {
	struct gpu g;
	struct instance i;
	int status = describe("nvmlDeviceGetName", d, &g, &i);
	return status ? status : put(d->instance == BOARD ? g.name : i.name, name, length);
}

EXPORT int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *pci) {
	struct gpu g;
	struct instance i;
	int status = describe("nvmlDeviceGetPciInfo", d, &g, &i);
	if (status)
		return status;
	memset(pci, 0, sizeof *pci);
	u32 function = 0;
	sscanf(g.bus, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function);
	snprintf(pci->address, sizeof pci->address, "%08X:%02X:%02X.%X", pci->domain, pci->bus, pci->device, function);
	snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.%X", pci->domain & 0xffff, pci->bus & 0xff,
	         pci->device & 0xff, function & 0xf);
	return SUCCESS;
}

EXPORT int nvmlDeviceGetPciInfo_v2(struct device *d, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(d, pci); }

static int index_of(const char *call, const struct device *d, u32 *out) {
	int status = enter_device(call, d);
	if (!status)
		*out = (u32)d->gpu;
	return status;
}

EXPORT int nvmlDeviceGetIndex(struct device *d, u32 *out) { return index_of("nvmlDeviceGetIndex", d, out); }
EXPORT int nvmlDeviceGetMinorNumber(struct device *d, u32 *out) { return index_of("nvmlDeviceGetMinorNumber", d, out); }
