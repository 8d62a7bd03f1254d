// MIG: the devices of a board.
#include "fake.h"

struct attributes {
	u32 multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, instance_slices, compute_slices;
	u64 mib;
};
SIZED(struct attributes, 40);

EXPORT int nvmlDeviceGetMigMode(struct device *d, u32 *current, u32 *pending) {
	double mode;
	int status = enter_device("nvmlDeviceGetMigMode", d);
	if (status || (status = reading_now(d, "mig_mode", &mode)))
		return status;
	*current = *pending = (u32)mode;
	return SUCCESS;
}

// The count is 0 without MIG support, as on real boards.
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct device *d, u32 *count) {
	double mode;
	int status = enter_device("nvmlDeviceGetMaxMigDeviceCount", d);
	if (!status)
		*count = reading_now(d, "mig_mode", &mode) ? 0 : 7;
	return status;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, u32 index, struct device **out) {
	int status = enter_device("nvmlDeviceGetMigDeviceHandleByIndex", d);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	struct device *found = NULL;
	for (size_t i = 0; i < w->instances.n; i++)
		if (w->instances.at[i].gpu == d->gpu && !found && index-- == 0)
			found = handle(d->gpu, w->instances.at[i].id);
	unlock();
	if (found)
		*out = found;
	return found ? SUCCESS : NOT_FOUND;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct device *d, struct device **out) {
	int status = enter_device("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", d);
	if (!status && d->instance == BOARD)
		status = INVALID_ARGUMENT;
	if (!status)
		*out = handle(d->gpu, BOARD);
	return status;
}

EXPORT int nvmlDeviceIsMigDeviceHandle(struct device *d, u32 *is) {
	int status = enter_device("nvmlDeviceIsMigDeviceHandle", d);
	if (!status)
		*is = d->instance != BOARD;
	return status;
}

// look copies the entry of a GPU instance.
static int look(const char *call, const struct device *d, struct instance *out) {
	int status = enter_device(call, d);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	struct instance *i = instance_of(w, d);
	if (i)
		*out = *i;
	unlock();
	return i ? SUCCESS : d->instance == BOARD ? NOT_SUPPORTED : NOT_FOUND;
}

EXPORT int nvmlDeviceGetGpuInstanceId(struct device *d, u32 *id) {
	struct instance i;
	int status = look("nvmlDeviceGetGpuInstanceId", d, &i);
	if (!status)
		*id = (u32)i.id;
	return status;
}

EXPORT int nvmlDeviceGetComputeInstanceId(struct device *d, u32 *id) {
	struct instance i;
	int status = look("nvmlDeviceGetComputeInstanceId", d, &i);
	if (!status)
		*id = (u32)i.compute;
	return status;
}

EXPORT int nvmlDeviceGetAttributes_v2(struct device *d, struct attributes *out) {
	struct instance i;
	int status = look("nvmlDeviceGetAttributes", d, &i);
	if (!status)
		*out = (struct attributes){.instance_slices = i.slices, .compute_slices = i.slices, .mib = i.mib};
	return status;
}

EXPORT int nvmlDeviceGetAttributes(struct device *d, struct attributes *out) { return nvmlDeviceGetAttributes_v2(d, out); }
