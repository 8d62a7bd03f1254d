// What the parts of the fake share. Nothing here is NVIDIA's: the structures that
// cross the library's border are declared by what they hold, in the order and with
// the sizes that the real library has, which a test compares with go-nvml's.
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

// SIZED fixes the size of a structure that crosses the border.
#define SIZED(type, size) _Static_assert(sizeof(type) == size, #type)

typedef unsigned int u32;
typedef unsigned long long u64;

// The results of calls, under NVML's numbers.
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
	MAX_INSTANCES = 16, // GPU instance ids are below
	BOARD = -1,         // the instance of a board's own handle
	ANY = -2,           // the GPU of a rule that is for all
	TEXT = 96,          // the longest word of a scenario, its end included
	NO_INSTANCE = -1,   // as an unsigned int: NVML's for no instance
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

// A value is one number. It grows by rate a second, and had grown by carry at
// since.
struct value {
	struct device of;
	char key[TEXT];
	double number, rate, carry;
	long long since;
};

// A rule makes the calls of a name, on a device or on all, go wrong.
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

// A list grows as its scenario does.
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

// parse reads a scenario from the file at path, and ends the program, with a line
// on stderr, where it makes no sense. It is 0 if there is no such file.
int parse(struct world *w, const char *path);

// world_free forgets what parse made.
void world_free(struct world *w);

// result returns the number of a name such as NOT_SUPPORTED, or -1.
int result(const char *name);

// lock gives the caller the world, in its latest state, until it calls unlock.
// It is NULL, and nothing is locked, before nvmlInit and once the scenario's file
// is gone.
struct world *lock(void);
void unlock(void);

// enter begins a call: it is slow, hangs and fails as the scenario says. A call on
// a device has one, others NULL. Versions of a function have one name.
int enter(const char *call, const struct device *d);

// enter_device is enter for a call that needs a device. A handle that is none, or
// whose device is no more, is refused.
int enter_device(const char *call, const struct device *d);

// failing returns the result that a rule has for a name, or SUCCESS.
int failing(const struct world *w, const char *name, const struct device *d);

// reading returns a number of a device, or NOT_SUPPORTED where the scenario gives
// none, or what a rule for the key says. Times are in microseconds since 1970: a double
// of seconds would be too coarse for NVLink.
int reading(const struct device *d, const char *key, long long at, double *number);
int reading_now(const struct device *d, const char *key, double *number);
long long now(void);
void pause_ms(int ms);

// handle returns the handle of a device, the same for as long as the library is
// loaded; gpu_of and instance_of return what w has of it, or NULL.
struct device *handle(int gpu, int instance);
struct gpu *gpu_of(const struct world *w, const struct device *d);
struct instance *instance_of(const struct world *w, const struct device *d);

// put copies text into a caller's buffer.
int put(const char *text, char *buffer, u32 length);

#endif
