#include "runtime/job/philox.h"
