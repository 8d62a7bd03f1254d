// Declarations that the parts of the fake share. Nothing here is NVIDIA's:
// structures of the library's interface are declared by their contents, in the
// order and with the sizes of the real library, which a test compares with
// go-nvml's.
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

// SIZED checks the size of a structure of the interface.
#define SIZED(type, size) _Static_assert(sizeof(type) == size, #type)

typedef unsigned int u32;
typedef unsigned long long u64;

// The results of calls, with NVML's numbers.
enum {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	TIMEOUT = 10,
	GPU_IS_LOST = 15,
	MEMORY = 20,
	VERSION_MISMATCH = 25,
};

enum {
	MAX_GPUS = 64,
	MAX_INSTANCES = 16, // GPU instance ids are smaller
	BOARD = -1,         // the instance of a board's own handle
	ANY = -2,           // the GPU of a rule for all devices
	TEXT = 96,          // the longest word of a scenario, including its terminator
	NO_INSTANCE = -1,   // NVML's value for no instance, as an unsigned int
};

// A device is what a handle points to: a board or one of its GPU instances.
struct device {
	int gpu, instance;
};

struct gpu {
	int index;
	char uuid[TEXT], bus[TEXT], name[TEXT];
	int gpm, lost;
};

struct instance {
	int gpu, id, compute;
	char uuid[TEXT], name[TEXT];
	u32 slices;
	u64 mib;
};

// A value is one number. It grows by rate per second, and had grown by carry at
// the time since.
struct value {
	struct device of;
	char key[TEXT];
	double number, rate, carry;
	long long since;
};

// A rule makes the calls with a name fail, on one device or on all.
struct rule {
	enum { FAIL, SLOW, HANG } kind;
	char name[TEXT];
	struct device of;
	int number; // the result of FAIL, the milliseconds of SLOW
};

struct xid {
	struct device of;
	u64 code;
};

struct process {
	struct device of;
	char kind[TEXT];
	u32 pid;
	u64 bytes;
};

// A list has a dynamic length.
#define LIST(type) \
	struct {       \
		type *at;  \
		size_t n;  \
	}

struct world {
	char driver[TEXT];
	LIST(struct gpu) gpus;
	LIST(struct instance) instances;
	LIST(struct value) values;
	LIST(struct rule) rules;
	LIST(struct xid) xids;
	LIST(struct process) processes;
};

// parse reads a scenario from the file at path. It returns 0 if there is no such
// file. On an invalid line it prints that to stderr and aborts.
int parse(struct world *w, const char *path);

// world_free frees what parse allocated.
void world_free(struct world *w);

// result returns the number of a result such as NOT_SUPPORTED, or -1.
int result(const char *name);

// lock locks and returns the world in its latest state, until unlock. Before
// nvmlInit and after the scenario's file is gone it returns NULL and locks
// nothing.
struct world *lock(void);
void unlock(void);

// enter begins a call: it is slow, hangs and fails as the scenario says. d is NULL
// for calls without a device. All versions of a function have the same name.
int enter(const char *call, const struct device *d);

// enter_device is enter for a call that needs a device. It refuses invalid
// handles, and those of devices that are gone.
int enter_device(const char *call, const struct device *d);

// failing returns the result of the rule for a name, or SUCCESS.
int failing(const struct world *w, const char *name, const struct device *d);

// reading stores a number of a device. It returns NOT_SUPPORTED if the scenario has
// none, or the result of a rule for the key. Times are in microseconds since 1970: a
// double of seconds would be too coarse for NVLink.
int reading(const struct device *d, const char *key, long long at, double *number);
int reading_now(const struct device *d, const char *key, double *number);
long long now(void);
void pause_ms(int ms);

// handle returns the handle of a device, which stays the same while the library
// is loaded; gpu_of and instance_of return its entry in w, or NULL.
struct device *handle(int gpu, int instance);
struct gpu *gpu_of(const struct world *w, const struct device *d);
struct instance *instance_of(const struct world *w, const struct device *d);

// put copies text into a caller's buffer.
int put(const char *text, char *buffer, u32 length);

#endif
