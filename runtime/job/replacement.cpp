#include "runtime/job/replacement.h"
