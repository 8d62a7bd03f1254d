// Calls that return numbers of a device. Each has keys in the scenario.
#include <string.h>

#include "fake.h"

struct utilization {
	u32 gpu, memory;
};
SIZED(struct utilization, 8);

struct memory {
	u64 total, free, used;
};
SIZED(struct memory, 24);

struct memory_v2 {
	u32 version;
	u64 total, reserved, free, used;
};
SIZED(struct memory_v2, 40);

struct temperature {
	u32 version;
	int sensor, celsius;
};
SIZED(struct temperature, 12);

struct violation {
	u64 reference, nanoseconds;
};
SIZED(struct violation, 16);

// get performs a call that returns one number.
static int get(const char *call, const struct device *d, const char *key, double *number) {
	int status = enter_device(call, d);
	return status ? status : reading_now(d, key, number);
}

static int get_u32(const char *call, const struct device *d, const char *key, u32 *out) {
	double number;
	int status = get(call, d, key, &number);
	if (!status)
		*out = (u32)number;
	return status;
}

static int get_u64(const char *call, const struct device *d, const char *key, u64 *out) {
	double number;
	int status = get(call, d, key, &number);
	if (!status)
		*out = (u64)number;
	return status;
}

// NUMBER defines a call that takes a device and returns one number.
#define NUMBER(call, size, key) \
	EXPORT int call(struct device *d, size *out) { return get_##size(#call, d, key, out); }

NUMBER(nvmlDeviceGetPowerUsage, u32, "power_mw")
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, u32, "power_limit_default_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, u32, "power_limit_enforced_mw")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, "energy_mj")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "clock_event_reasons")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "clock_event_reasons")
NUMBER(nvmlDeviceGetPerformanceState, u32, "pstate")
NUMBER(nvmlDeviceGetPcieReplayCounter, u32, "pcie_replays")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, u32, "pcie_generation")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, u32, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, u32, "pcie_generation_max")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, u32, "pcie_generation_max")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, u32, "pcie_width_max")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, u32, "retired_pending")
NUMBER(nvmlDeviceGetArchitecture, u32, "architecture")

// get_of is get_u32 for a call with a selector: keys has the key for each of
// NVML's numbers, NULL for none.
static int get_of(const char *call, const struct device *d, const char *const *keys, u32 n, u32 which, u32 *out) {
	if (which >= n || !keys[which])
		return INVALID_ARGUMENT;
	return get_u32(call, d, keys[which], out);
}

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const char *const clocks[] = {"graphics_mhz", "sm_mhz", "memory_mhz", "video_mhz"};
static const char *const max_clocks[] = {"graphics_max_mhz", "sm_max_mhz", "memory_max_mhz", "video_max_mhz"};
static const char *const sensors[] = {"gpu_celsius"};
static const char *const thresholds[] = {"shutdown_celsius", "slowdown_celsius", "memory_max_celsius", "gpu_max_celsius"};
static const char *const pcie_counters[] = {"pcie_tx_kbps", "pcie_rx_kbps"};

EXPORT int nvmlDeviceGetClockInfo(struct device *d, u32 which, u32 *out) {
	return get_of("nvmlDeviceGetClockInfo", d, clocks, LENGTH(clocks), which, out);
}

EXPORT int nvmlDeviceGetMaxClockInfo(struct device *d, u32 which, u32 *out) {
	return get_of("nvmlDeviceGetMaxClockInfo", d, max_clocks, LENGTH(max_clocks), which, out);
}

EXPORT int nvmlDeviceGetTemperature(struct device *d, u32 which, u32 *out) {
	return get_of("nvmlDeviceGetTemperature", d, sensors, LENGTH(sensors), which, out);
}

EXPORT int nvmlDeviceGetTemperatureThreshold(struct device *d, u32 which, u32 *out) {
	return get_of("nvmlDeviceGetTemperatureThreshold", d, thresholds, LENGTH(thresholds), which, out);
}

EXPORT int nvmlDeviceGetPcieThroughput(struct device *d, u32 which, u32 *out) {
	return get_of("nvmlDeviceGetPcieThroughput", d, pcie_counters, LENGTH(pcie_counters), which, out);
}

EXPORT int nvmlDeviceGetTemperatureV(struct device *d, struct temperature *t) {
	u32 celsius;
	if (t->version != (sizeof *t | 1 << 24))
		return VERSION_MISMATCH;
	int status = get_of("nvmlDeviceGetTemperatureV", d, sensors, LENGTH(sensors), (u32)t->sensor, &celsius);
	if (!status)
		t->celsius = (int)celsius;
	return status;
}

// several reads keys into numbers, all or none.
static int several(const char *call, const struct device *d, const char *const *keys, size_t n, double *numbers) {
	int status = enter_device(call, d);
	for (size_t i = 0; i < n && !status; i++)
		status = reading_now(d, keys[i], &numbers[i]);
	return status;
}

EXPORT int nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *out) {
	static const char *const keys[] = {"gpu_percent", "memory_percent"};
	double number[LENGTH(keys)];
	int status = several("nvmlDeviceGetUtilizationRates", d, keys, LENGTH(keys), number);
	if (!status)
		*out = (struct utilization){(u32)number[0], (u32)number[1]};
	return status;
}

EXPORT int nvmlDeviceGetEncoderUtilization(struct device *d, u32 *percent, u32 *period) {
	*period = 167000; // microseconds, as on real boards
	return get_u32("nvmlDeviceGetEncoderUtilization", d, "encoder_percent", percent);
}

EXPORT int nvmlDeviceGetDecoderUtilization(struct device *d, u32 *percent, u32 *period) {
	*period = 167000;
	return get_u32("nvmlDeviceGetDecoderUtilization", d, "decoder_percent", percent);
}

static const char *const memory_keys[] = {"mem_total", "mem_reserved", "mem_free", "mem_used"};

// The first version counts reserved memory as used.
EXPORT int nvmlDeviceGetMemoryInfo(struct device *d, struct memory *out) {
	double number[LENGTH(memory_keys)];
	int status = several("nvmlDeviceGetMemoryInfo", d, memory_keys, LENGTH(memory_keys), number);
	if (!status)
		*out = (struct memory){(u64)number[0], (u64)number[2], (u64)number[3] + (u64)number[1]};
	return status;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *out) {
	double number[LENGTH(memory_keys)];
	if (out->version != (sizeof *out | 2 << 24))
		return VERSION_MISMATCH;
	int status = several("nvmlDeviceGetMemoryInfo_v2", d, memory_keys, LENGTH(memory_keys), number);
	if (!status)
		*out = (struct memory_v2){out->version, (u64)number[0], (u64)number[1], (u64)number[2], (u64)number[3]};
	return status;
}

EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(struct device *d, u32 *least, u32 *most) {
	static const char *const keys[] = {"power_limit_min_mw", "power_limit_max_mw"};
	double number[LENGTH(keys)];
	int status = several("nvmlDeviceGetPowerManagementLimitConstraints", d, keys, LENGTH(keys), number);
	if (!status)
		*least = (u32)number[0], *most = (u32)number[1];
	return status;
}

EXPORT int nvmlDeviceGetTotalEccErrors(struct device *d, u32 kind, u32 scope, u64 *out) {
	static const char *const keys[2][2] = {{"ecc_sbe_volatile", "ecc_sbe_aggregate"}, {"ecc_dbe_volatile", "ecc_dbe_aggregate"}};
	if (kind > 1 || scope > 1)
		return INVALID_ARGUMENT;
	return get_u64("nvmlDeviceGetTotalEccErrors", d, keys[kind][scope], out);
}

EXPORT int nvmlDeviceGetEccMode(struct device *d, u32 *current, u32 *pending) {
	int status = get_u32("nvmlDeviceGetEccMode", d, "ecc_mode", current);
	if (!status)
		*pending = *current;
	return status;
}

EXPORT int nvmlDeviceGetRemappedRows(struct device *d, u32 *correctable, u32 *uncorrectable, u32 *pending, u32 *failure) {
	static const char *const keys[] = {"remapped_correctable", "remapped_uncorrectable", "remap_pending", "remap_failure"};
	double number[LENGTH(keys)];
	int status = several("nvmlDeviceGetRemappedRows", d, keys, LENGTH(keys), number);
	if (!status)
		*correctable = (u32)number[0], *uncorrectable = (u32)number[1], *pending = (u32)number[2], *failure = (u32)number[3];
	return status;
}

// retired returns one zero for each page that was retired for a cause.
static int retired(const char *call, const struct device *d, u32 cause, u32 *count, u64 *addresses, u64 *stamps) {
	static const char *const keys[] = {"retired_sbe", "retired_dbe"};
	u32 n, room = *count;
	int status = get_of(call, d, keys, LENGTH(keys), cause, &n);
	if (status)
		return status;
	*count = n;
	if (n > room)
		return INSUFFICIENT_SIZE;
	if (addresses)
		memset(addresses, 0, n * sizeof *addresses);
	if (stamps)
		memset(stamps, 0, n * sizeof *stamps);
	return SUCCESS;
}

EXPORT int nvmlDeviceGetRetiredPages(struct device *d, u32 cause, u32 *count, u64 *addresses) {
	return retired("nvmlDeviceGetRetiredPages", d, cause, count, addresses, NULL);
}

EXPORT int nvmlDeviceGetRetiredPages_v2(struct device *d, u32 cause, u32 *count, u64 *addresses, u64 *stamps) {
	return retired("nvmlDeviceGetRetiredPages", d, cause, count, addresses, stamps);
}

EXPORT int nvmlDeviceGetViolationStatus(struct device *d, u32 policy, struct violation *out) {
	static const char *const keys[] = {
		[0] = "violation_power_ns", [1] = "violation_thermal_ns", [2] = "violation_sync_boost_ns",
		[3] = "violation_board_limit_ns", [4] = "violation_low_utilization_ns", [5] = "violation_reliability_ns",
		[10] = "violation_app_clocks_ns", [11] = "violation_base_clocks_ns",
	};
	if (policy >= LENGTH(keys) || !keys[policy])
		return INVALID_ARGUMENT;
	u64 ns;
	int status = get_u64("nvmlDeviceGetViolationStatus", d, keys[policy], &ns);
	if (!status)
		*out = (struct violation){(u64)now(), ns};
	return status;
}
