#include "runtime/job/permutation.h"
