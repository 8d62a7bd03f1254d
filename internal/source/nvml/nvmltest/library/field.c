// Field values: one call for many numbers, each with its own result.
#include <stdio.h>
#include <string.h>

#include "fake.h"

struct field_value {
	u32 id, scope;
	long long microseconds, latency;
	u32 type;
	int status;
	union {
		double as_double;
		int as_int;
		u32 as_u32;
		u64 as_u64;
	} value;
};
SIZED(struct field_value, 40);

enum { TYPE_U32 = 1, TYPE_U64 = 3, TYPE_INT = 5 };

// known are the fields whose key is not field.ID, because a call returns them
// too, and those that are not u64.
static const struct {
	u32 id;
	const char *key;
	u32 type;
} known[] = {
	{1, "ecc_mode", TYPE_U32},
	{3, "ecc_sbe_volatile", TYPE_U64},
	{4, "ecc_dbe_volatile", TYPE_U64},
	{5, "ecc_sbe_aggregate", TYPE_U64},
	{6, "ecc_dbe_aggregate", TYPE_U64},
	{29, "retired_sbe", TYPE_U64},
	{30, "retired_dbe", TYPE_U64},
	{31, "retired_pending", TYPE_U64},
	{38, "nvlink_crc_flit", TYPE_U64},
	{45, "nvlink_crc_data", TYPE_U64},
	{52, "nvlink_replay", TYPE_U64},
	{59, "nvlink_recovery", TYPE_U64},
	{74, "violation_power_ns", TYPE_U64},
	{75, "violation_thermal_ns", TYPE_U64},
	{76, "violation_sync_boost_ns", TYPE_U64},
	{77, "violation_board_limit_ns", TYPE_U64},
	{78, "violation_low_utilization_ns", TYPE_U64},
	{79, "violation_reliability_ns", TYPE_U64},
	{80, "violation_app_clocks_ns", TYPE_U64},
	{81, "violation_base_clocks_ns", TYPE_U64},
	{82, "memory_celsius", TYPE_U32},
	{83, "energy_mj", TYPE_U64},
	{90, "nvlink_speed_mbps", TYPE_U32},
	{91, "nvlink_links", TYPE_U32},
	{94, "pcie_replays", TYPE_U32},
	{138, "nvlink_tx_kib", TYPE_U64},
	{139, "nvlink_rx_kib", TYPE_U64},
	{142, "remapped_correctable", TYPE_U32},
	{143, "remapped_uncorrectable", TYPE_U32},
	{144, "remap_pending", TYPE_U32},
	{145, "remap_failure", TYPE_U32},
	{185, "power_mw", TYPE_U32},
	{186, "power_instant_mw", TYPE_U32},
	{187, "power_limit_min_mw", TYPE_U32},
	{188, "power_limit_max_mw", TYPE_U32},
	{189, "power_limit_default_mw", TYPE_U32},
	{190, "power_limit_enforced_mw", TYPE_U32},
	{191, "energy_mj", TYPE_U64},
	{192, "power_limit_mw", TYPE_U32},
	{193, "field.193", TYPE_INT},
	{194, "field.194", TYPE_INT},
	{195, "field.195", TYPE_INT},
	{196, "field.196", TYPE_INT},
	{230, "recovery_action", TYPE_U32},
};

// of_link returns whether the scope of a field is a link: its number, or -1 for
// all together.
static int of_link(u32 id) {
	return (id >= 138 && id <= 141) || id == 146 || (id >= 161 && id <= 168) || (id >= 201 && id <= 223) ||
	       (id >= 235 && id <= 250);
}

// key stores the key of a field and returns its type.
static u32 key(const struct field_value *v, char *out, size_t size) {
	u32 type = TYPE_U64;
	snprintf(out, size, "field.%u", v->id);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].id == v->id) {
			snprintf(out, size, "%s", known[i].key);
			type = known[i].type;
		}
	if (of_link(v->id) && v->scope != (u32)-1)
		snprintf(out, size, "field.%u.%u", v->id, v->scope);
	return type;
}

static void fill(const struct device *d, struct field_value *v, long long at) {
	char text[TEXT];
	double number = 0;
	v->type = key(v, text, sizeof text);
	v->status = reading(d, text, at, &number);
	v->microseconds = at;
	v->latency = 0;
	memset(&v->value, 0, sizeof v->value);
	if (v->status)
		return;
	switch (v->type) {
	case TYPE_U32:
		v->value.as_u32 = (u32)number;
		break;
	case TYPE_INT:
		v->value.as_int = (int)number;
		break;
	default:
		v->value.as_u64 = (u64)number;
	}
}

EXPORT int nvmlDeviceGetFieldValues(struct device *d, int n, struct field_value *values) {
	int status = enter_device("nvmlDeviceGetFieldValues", d);
	long long at = now();
	for (int i = 0; i < n && !status; i++)
		fill(d, &values[i], at);
	return status;
}
