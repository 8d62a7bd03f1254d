// Calls of newer drivers, whose structures contain their version.
#include <stddef.h>
#include <string.h>

#include "fake.h"

struct margin {
	u32 version;
	int celsius;
};
SIZED(struct margin, 8);

struct banks {
	u32 spare[5]; // max, high, partial, low, none
};
SIZED(struct banks, 20);

struct sram {
	u32 version;
	u64 counts[11];
	u32 exceeded;
};
SIZED(struct sram, 104);

struct fabric {
	u32 version;
	unsigned char cluster[16];
	u32 status, clique;
	unsigned char state;
	u32 mask;
	unsigned char health;
};
SIZED(struct fabric, 40);

EXPORT int nvmlDeviceGetMarginTemperature(struct device *d, struct margin *out) {
	double number;
	if (out->version != (sizeof *out | 1 << 24))
		return VERSION_MISMATCH;
	int status = enter_device("nvmlDeviceGetMarginTemperature", d);
	if (!status)
		status = reading_now(d, "margin_celsius", &number);
	if (!status)
		out->celsius = (int)number;
	return status;
}

EXPORT int nvmlDeviceGetRowRemapperHistogram(struct device *d, struct banks *out) {
	static const char *const keys[] = {"banks_max", "banks_high", "banks_partial", "banks_low", "banks_none"};
	double number;
	int status = enter_device("nvmlDeviceGetRowRemapperHistogram", d);
	for (int i = 0; i < 5 && !status; i++)
		if (!(status = reading_now(d, keys[i], &number)))
			out->spare[i] = (u32)number;
	return status;
}

EXPORT int nvmlDeviceGetSramEccErrorStatus(struct device *d, struct sram *out) {
	double number;
	if (out->version != (sizeof *out | 1 << 24))
		return VERSION_MISMATCH;
	int status = enter_device("nvmlDeviceGetSramEccErrorStatus", d);
	if (!status)
		status = reading_now(d, "sram_exceeded", &number);
	if (status)
		return status;
	memset(out->counts, 0, sizeof out->counts);
	out->exceeded = (u32)number;
	return SUCCESS;
}

// The status is valid in state 3, when the fabric manager is done. Version 2 ends before the health.
EXPORT int nvmlDeviceGetGpuFabricInfoV(struct device *d, struct fabric *out) {
	double health, error;
	int old = out->version == (offsetof(struct fabric, health) | 2 << 24);
	if (!old && out->version != (sizeof *out | 3 << 24))
		return VERSION_MISMATCH;
	int status = enter_device("nvmlDeviceGetGpuFabricInfoV", d);
	if (!status)
		status = reading_now(d, "fabric_health", &health);
	if (status)
		return status;
	memset(out->cluster, 0, sizeof out->cluster);
	out->cluster[0] = 0xfa, out->cluster[1] = 0xb1, out->cluster[15] = 0xc;
	out->clique = 5;
	out->mask = 426 - (1 << 4); // all is well but a route, whatever the health says
	out->state = 2;
	out->status = 0;
	if (!reading_now(d, "fabric_error", &error)) {
		out->state = 3;
		out->status = (u32)error;
	}
	if (!old)
		out->health = (unsigned char)health;
	return SUCCESS;
}
