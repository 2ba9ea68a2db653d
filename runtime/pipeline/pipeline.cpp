#include "runtime/pipeline/pipeline.h"
