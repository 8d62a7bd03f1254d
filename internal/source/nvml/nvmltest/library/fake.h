// What the parts of the fake share. Structures of the library's interface are declared by their
// contents, in the order and with the sizes of the real library.
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned int u32;
typedef unsigned long long u64;

// Results of calls, with NVML's numbers.
enum {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	TIMEOUT = 10,
	GPU_IS_LOST = 15,
	VERSION_MISMATCH = 25,
};

enum { MAX_GPUS = 64, MAX_VALUES = 8192, MAX_RULES = 64 };

// The scenario, which Scenario.Text in Go writes.
struct world {
	size_t gpus, values, rules;
	struct gpu {
		char uuid[96], bus[32], name[96];
	} gpu[MAX_GPUS];
	struct value { // grows by rate per second
		int gpu;
		char key[32];
		double number, rate;
	} value[MAX_VALUES];
	struct rule { // makes a call of a GPU, or -1 for all, fail or hang
		char kind[8], call[64];
		int gpu, number; // the result
	} rule[MAX_RULES];
};

// lock locks and returns the scenario in its latest state, until unlock. Before nvmlInit and after
// the file is gone it returns NULL and locks nothing.
struct world *lock(void);
void unlock(void);

// A device is the number of a GPU; its address is the handle.
struct device {
	int gpu;
};
struct device *handle(int gpu);

// enter begins a call: it hangs and fails as the scenario says. d is NULL for calls
// without a device.
int enter(const char *call, const struct device *d);

// reading stores a number of a device at a time in microseconds; NOT_SUPPORTED if there is none.
int reading(const struct device *d, const char *key, long long at, double *number);

// get is enter, and stores numbers of the device by their keys, all or none.
int get(const char *call, const struct device *d, const char *const *keys, size_t n, double *numbers);

long long now(void); // microseconds since 1970
void pause_ms(int ms);
