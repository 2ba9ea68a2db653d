#include "runtime/job/schedule.h"
