#include "runtime/feed/batch.h"
