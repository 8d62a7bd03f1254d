// The names and texts of results.
#include <string.h>

#include "fake.h"

static const struct {
	int number;
	const char *name, *text;
} results[] = {
	{0, "SUCCESS", "Success"},
	{1, "UNINITIALIZED", "Uninitialized"},
	{2, "INVALID_ARGUMENT", "Invalid Argument"},
	{3, "NOT_SUPPORTED", "Not Supported"},
	{4, "NO_PERMISSION", "Insufficient Permissions"},
	{6, "NOT_FOUND", "Not Found"},
	{7, "INSUFFICIENT_SIZE", "Insufficient Size"},
	{8, "INSUFFICIENT_POWER", "Insufficient External Power"},
	{9, "DRIVER_NOT_LOADED", "Driver Not Loaded"},
	{10, "TIMEOUT", "Timeout"},
	{11, "IRQ_ISSUE", "Interrupt Request Issue"},
	{12, "LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"},
	{13, "FUNCTION_NOT_FOUND", "Function Not Found"},
	{14, "CORRUPTED_INFOROM", "Corrupted infoROM"},
	{15, "GPU_IS_LOST", "GPU is lost"},
	{16, "RESET_REQUIRED", "GPU requires reset"},
	{17, "OPERATING_SYSTEM", "GPU access blocked by the operating system"},
	{18, "LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch"},
	{19, "IN_USE", "In use by another client"},
	{20, "MEMORY", "Insufficient Memory"},
	{21, "NO_DATA", "No data"},
	{23, "INSUFFICIENT_RESOURCES", "Insufficient Resources"},
	{25, "ARGUMENT_VERSION_MISMATCH", "Argument version mismatch"},
	{26, "DEPRECATED", "Deprecated"},
	{27, "NOT_READY", "Not Ready"},
	{28, "GPU_NOT_FOUND", "No GPUs found"},
	{29, "INVALID_STATE", "Invalid state"},
	{999, "UNKNOWN", "Unknown Error"},
};

int result(const char *name) {
	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		if (!strcmp(results[i].name, name))
			return results[i].number;
	return -1;
}

EXPORT const char *nvmlErrorString(int number) {
	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		if (results[i].number == number)
			return results[i].text;
	return "Unknown Error";
}
