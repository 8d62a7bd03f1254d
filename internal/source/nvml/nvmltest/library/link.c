// Calls for single NVLinks.
#include <stdio.h>

#include "fake.h"

// of_link reads nvlink.LINK.WHAT.
static int of_link(const char *call, const struct device *d, u32 link, const char *what, double *number) {
	char key[TEXT];
	int status = enter_device(call, d);
	snprintf(key, sizeof key, "nvlink.%u.%s", link, what);
	return status ? status : reading_now(d, key, number);
}

static int get_u32(const char *call, const struct device *d, u32 link, const char *what, u32 *out) {
	double number;
	int status = of_link(call, d, link, what, &number);
	if (!status)
		*out = (u32)number;
	return status;
}

EXPORT int nvmlDeviceGetNvLinkState(struct device *d, u32 link, u32 *active) {
	return get_u32("nvmlDeviceGetNvLinkState", d, link, "state", active);
}

EXPORT int nvmlDeviceGetNvLinkVersion(struct device *d, u32 link, u32 *version) {
	return get_u32("nvmlDeviceGetNvLinkVersion", d, link, "version", version);
}

EXPORT int nvmlDeviceGetNvLinkErrorCounter(struct device *d, u32 link, u32 counter, u64 *out) {
	static const char *const counters[] = {"replay", "recovery", "crc_flit", "crc_data", "ecc_data"};
	double number;
	if (counter >= sizeof counters / sizeof *counters)
		return INVALID_ARGUMENT;
	int status = of_link("nvmlDeviceGetNvLinkErrorCounter", d, link, counters[counter], &number);
	if (!status)
		*out = (u64)number;
	return status;
}
