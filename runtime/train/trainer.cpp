#include "runtime/train/trainer.h"
