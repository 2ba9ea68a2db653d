// Operators for spec.pipeline from a shared library (`op: Plugin`). docs/plugins.md has the guide,
// examples/plugin a library that uses this header.
//
// The first part is the binary interface, in C: one exported function that returns a table of
// functions. The second, for C++, is what most plugins use: derive from hetero::PluginOperator and
// write HETERO_PLUGIN_OPERATORS. This header needs nothing but a C++17 compiler.
//
// A picture is uint8 [height, width, channels] without gaps. The same picture, shape and random
// numbers must give the same bytes on every machine, else the job's stream digest depends on where
// a sample was prepared: use integers, and draw from HeteroRandom only.
#ifndef HETERO_OPERATOR_PLUGIN_H_
#define HETERO_OPERATOR_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Raised with every change of what follows. A library built for another version is refused.
#define HETERO_OPERATOR_ABI_VERSION 1

// What functions return. A bad picture is counted and replaced by another sample; a failure ends
// the job.
#define HETERO_OK 0
#define HETERO_BAD_PICTURE 1
#define HETERO_FAILED 2

typedef struct HeteroShape {
  int32_t height;
  int32_t width;
  int32_t channels;
} HeteroShape;

typedef struct HeteroParameter {
  const char* name;
  const char* value;
} HeteroParameter;

// Uniform 32-bit numbers that depend on the job's seed, the epoch, the sample and the operator's
// place in the pipeline alone.
typedef struct HeteroRandom {
  void* state;
  uint32_t (*next)(void* state);
} HeteroRandom;

// Where a function that does not return HETERO_OK writes why, with a terminating zero.
typedef struct HeteroMessage {
  char* text;
  size_t size;
} HeteroMessage;

typedef struct HeteroOperatorTable {
  uint32_t abi_version;  // HETERO_OPERATOR_ABI_VERSION

  // Makes the operator `name` with the manifest's parameters. `training` is 0 for validation
  // samples, which should get a deterministic form.
  int32_t (*create)(const char* name, const HeteroParameter* parameters, size_t parameter_count,
                    int32_t training, void** instance, HeteroMessage message);
  void (*destroy)(void* instance);

  // Shape of the result for a picture of shape `in`. Height and width of `in` are 0 when they vary
  // from picture to picture; those of the result may be 0 only then.
  int32_t (*output_shape)(const void* instance, HeteroShape in, HeteroShape* out,
                          HeteroMessage message);

  // Writes the whole result, of the shape that output_shape() gave. Called from several threads at
  // once; and, where a sample is suspected of ending processes, in a child of fork(), which has
  // none of the process's other threads. Who waits for a thread there, of a pool or OpenMP's, comes
  // to no end and is ended after a minute; the sample is then tried in a CPU worker itself, once.
  int32_t (*apply)(const void* instance, HeteroShape in, const uint8_t* pixels,
                   const HeteroRandom* random, HeteroShape out, uint8_t* result,
                   HeteroMessage message);
} HeteroOperatorTable;

// The one symbol that a library exports.
#define HETERO_OPERATOR_TABLE_SYMBOL "hetero_operator_table"
typedef const HeteroOperatorTable* (*HeteroOperatorTableFunction)(void);

#ifdef __cplusplus
}  // extern "C"

#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

namespace hetero {

// Thrown by PluginOperator::Apply for a picture that it cannot take. Any other exception, and any
// from elsewhere, is a failure of the job.
class BadPicture : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class PluginRandom {
 public:
  explicit PluginRandom(const HeteroRandom* random) : random_(random) {}

  uint32_t NextUint32() { return random_->next(random_->state); }
  // Uniform in [0, 1).
  double NextDouble() { return NextUint32() * (1.0 / 4294967296.0); }

 private:
  const HeteroRandom* random_;
};

struct PluginPicture {
  HeteroShape shape;
  const uint8_t* pixels;
};

struct PluginResult {
  HeteroShape shape;
  uint8_t* pixels;
};

// One step of the pipeline. Immutable: Apply() is called from several threads at once, and in
// children of fork(). See HeteroOperatorTable.
class PluginOperator {
 public:
  virtual ~PluginOperator() = default;
  // See HeteroOperatorTable.
  virtual HeteroShape OutputShape(const HeteroShape& in) const { return in; }
  virtual void Apply(const PluginPicture& in, PluginRandom& random,
                     const PluginResult& out) const = 0;
};

struct PluginRequest {
  std::string name;
  std::map<std::string, std::string> parameters;
  bool training;
};

namespace plugin_detail {

inline void Explain(const char* what, HeteroMessage message) {
  if (message.size == 0) return;
  std::strncpy(message.text, what, message.size - 1);
  message.text[message.size - 1] = '\0';
}

// No exception may cross the boundary: the program may be built by another compiler.
template <class Function>
int32_t Guarded(HeteroMessage message, Function function) noexcept {
  try {
    function();
    return HETERO_OK;
  } catch (const BadPicture& bad) {
    Explain(bad.what(), message);
    return HETERO_BAD_PICTURE;
  } catch (const std::exception& error) {
    Explain(error.what(), message);
    return HETERO_FAILED;
  } catch (...) {
    Explain("threw something that is no std::exception", message);
    return HETERO_FAILED;
  }
}

template <std::unique_ptr<PluginOperator> (*kMake)(const PluginRequest&)>
int32_t Create(const char* name, const HeteroParameter* parameters, size_t parameter_count,
               int32_t training, void** instance, HeteroMessage message) {
  return Guarded(message, [&] {
    PluginRequest request{name, {}, training != 0};
    for (size_t i = 0; i < parameter_count; ++i) {
      request.parameters[parameters[i].name] = parameters[i].value;
    }
    std::unique_ptr<PluginOperator> made = kMake(request);
    if (made == nullptr) throw std::runtime_error("this library has no operator of that name");
    *instance = made.release();
  });
}

inline void Destroy(void* instance) { delete static_cast<PluginOperator*>(instance); }

inline int32_t OutputShape(const void* instance, HeteroShape in, HeteroShape* out,
                           HeteroMessage message) {
  return Guarded(message,
                 [&] { *out = static_cast<const PluginOperator*>(instance)->OutputShape(in); });
}

inline int32_t Apply(const void* instance, HeteroShape in, const uint8_t* pixels,
                     const HeteroRandom* random, HeteroShape out, uint8_t* result,
                     HeteroMessage message) {
  return Guarded(message, [&] {
    PluginRandom numbers(random);
    static_cast<const PluginOperator*>(instance)->Apply({in, pixels}, numbers, {out, result});
  });
}

}  // namespace plugin_detail
}  // namespace hetero

// Exports the operators that `make` gives: std::unique_ptr<hetero::PluginOperator>
// make(const hetero::PluginRequest&), null for a name it does not know.
#define HETERO_PLUGIN_OPERATORS(make)                                          \
  extern "C" __attribute__((visibility("default"))) const HeteroOperatorTable* \
  hetero_operator_table(void) {                                                \
    static const HeteroOperatorTable table = {                                 \
        HETERO_OPERATOR_ABI_VERSION, hetero::plugin_detail::Create<make>,      \
        hetero::plugin_detail::Destroy, hetero::plugin_detail::OutputShape,    \
        hetero::plugin_detail::Apply};                                         \
    return &table;                                                             \
  }

#endif  // __cplusplus
#endif  // HETERO_OPERATOR_PLUGIN_H_
