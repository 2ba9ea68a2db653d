#include "runtime/source/dataset.h"
