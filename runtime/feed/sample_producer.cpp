#include "runtime/feed/sample_producer.h"
