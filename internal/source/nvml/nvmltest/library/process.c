// Lists of the processes on a device.
#include <string.h>

#include "fake.h"

struct process_info {
	u32 pid;
	u64 bytes;
	u32 instance, compute;
};
SIZED(struct process_info, 24);

static int list(const char *call, const struct device *d, const char *kind, u32 *count, struct process_info *out) {
	int status = enter_device(call, d);
	struct world *w = status ? NULL : lock();
	if (!w)
		return status ? status : UNINITIALIZED;
	u32 n = 0, room = *count;
	for (size_t i = 0; i < w->processes.n; i++) {
		struct process *p = &w->processes.at[i];
		if (p->of.gpu != d->gpu || strcmp(p->kind, kind) || (d->instance != BOARD && d->instance != p->of.instance))
			continue;
		struct instance *in = instance_of(w, &p->of);
		if (n < room)
			out[n] = (struct process_info){p->pid, p->bytes, (u32)p->of.instance, in ? (u32)in->compute : (u32)NO_INSTANCE};
		n++;
	}
	unlock();
	*count = n;
	return n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, u32 *count, struct process_info *out) {
	return list("nvmlDeviceGetComputeRunningProcesses", d, "compute", count, out);
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(struct device *d, u32 *count, struct process_info *out) {
	return list("nvmlDeviceGetGraphicsRunningProcesses", d, "graphics", count, out);
}

EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct device *d, u32 *count, struct process_info *out) {
	return list("nvmlDeviceGetMPSComputeRunningProcesses", d, "mps", count, out);
}
