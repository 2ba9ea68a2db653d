#include "runtime/source/make_dataset.h"
