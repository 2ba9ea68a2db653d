#include "runtime/train/models/script_model.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch::jit {
// Of serialization/import.h, which wants headers of caffe2 that are not part of the toolchain.
TORCH_API Module load(const std::string& filename, std::optional<c10::Device> device,
                      bool load_debug_files);
}  // namespace torch::jit

namespace hetero::train {
namespace {

namespace jit = torch::jit;

// What the forward pass of a file says about its layers.
struct GraphFacts {
  bool has_batch_norm = false;
  bool has_convolution = false;
  std::string fixed_mode;  // a layer whose training mode is a constant; empty: none
};

// The argument of `node` that says whether the layer trains; empty when the operator has none.
std::string_view ModeArgument(const jit::Node& node) {
  const std::string kind = node.kind().toQualString();
  if (kind == "aten::batch_norm" || kind == "aten::native_batch_norm") return "training";
  if (absl::StrContains(kind, "dropout")) return "train";
  return "";
}

// Dropout that a constant rate of 0 switches off, or whose rate is computed: the scripted attention
// of torch.nn holds such a call in a branch of its own and sets the rate to 0 outside training.
bool FollowsRate(const jit::Node& node) {
  if (!node.hasNamedInput("p")) return false;
  const std::optional<c10::IValue> p = jit::toIValue(node.namedInput("p"));
  return !p || (p->isDouble() && p->toDouble() == 0);
}

void Inspect(jit::Block* block, GraphFacts* facts) {
  for (jit::Node* node : block->nodes()) {
    for (jit::Block* inner : node->blocks()) Inspect(inner, facts);
    const std::string kind = node->kind().toQualString();
    facts->has_batch_norm |= kind == "aten::batch_norm" || kind == "aten::native_batch_norm";
    facts->has_convolution |= kind == "aten::conv2d" || kind == "aten::_convolution";
    const std::string mode(ModeArgument(*node));
    if (mode.empty() || node->maybeSchema() == nullptr || !node->hasNamedInput(mode)) continue;
    if (jit::toIValue(node->namedInput(mode)) && !FollowsRate(*node)) facts->fixed_mode = kind;
  }
}

GraphFacts FactsOf(const jit::Module& module) {
  const std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph()->copy();
  jit::Inline(*graph);
  GraphFacts facts;
  Inspect(graph->block(), &facts);
  return facts;
}

// Holds the tensors of one scripted submodule, so that parameters() and state names work.
class ScriptPart : public torch::nn::Module {
 public:
  explicit ScriptPart(const jit::Module& module) { Adopt(*this, module); }

  static void Adopt(torch::nn::Module& to, const jit::Module& module) {
    for (const auto& entry : module.named_parameters(/*recurse=*/false)) {
      to.register_parameter(entry.name, entry.value, entry.value.requires_grad());
    }
    for (const auto& entry : module.named_buffers(/*recurse=*/false)) {
      to.register_buffer(entry.name, entry.value);
    }
    for (const auto& child : module.named_children()) {
      to.register_module(child.name, std::make_shared<ScriptPart>(child.value));
    }
  }
};

class ScriptModel : public Model {
 public:
  ScriptModel(jit::Module module, GraphFacts facts)
      : module_(std::move(module)), facts_(std::move(facts)) {
    ScriptPart::Adopt(*this, module_);
  }

  torch::Tensor forward(torch::Tensor images) override {
    return module_.forward({std::move(images)}).toTensor();
  }
  void train(bool on = true) override {
    torch::nn::Module::train(on);
    module_.train(on);
  }
  bool has_batch_norm() const override { return facts_.has_batch_norm; }
  bool channels_last() const override { return facts_.has_convolution; }

 private:
  jit::Module module_;
  GraphFacts facts_;
};

absl::Status RefuseScript(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("spec.training.model.torchScript: ", path, ": ", reason));
}

absl::Status CheckOutput(const std::string& path, Model& model, int32_t classes,
                         const api::ImageShape& input) {
  torch::NoGradGuard no_grad;
  model.eval();
  const torch::Tensor output =
      model.forward(torch::zeros({2, input.channels, input.height, input.width}));
  model.train();
  if (output.dim() == 2 && output.size(0) == 2 && output.size(1) == classes) {
    return absl::OkStatus();
  }
  return RefuseScript(
      path, absl::StrCat("for 2 pictures of ", input.height, " x ", input.width, " x ",
                         input.channels, " it gives [", absl::StrJoin(output.sizes().vec(), ", "),
                         "] instead of [2, ", classes, "], one value per class"));
}

// The first line: what went wrong, without the interpreter's stack.
std::string Brief(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  const std::string text = own != nullptr ? own->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Model>> OpenScriptModel(const std::string& path, int32_t classes,
                                                       const api::ImageShape& input) {
  std::shared_ptr<ScriptModel> model;
  try {
    jit::Module module = jit::load(path, c10::Device(torch::kCPU), /*load_debug_files=*/false);
    GraphFacts facts = FactsOf(module);
    if (!facts.fixed_mode.empty()) {
      return RefuseScript(path, absl::StrCat("its ", facts.fixed_mode,
                                             " does not follow train() and eval(): the module was "
                                             "traced. Save torch.jit.script(model) instead"));
    }
    model = std::make_shared<ScriptModel>(std::move(module), std::move(facts));
  } catch (const std::exception& error) {
    return RefuseScript(path, absl::StrCat("cannot be loaded: ", Brief(error)));
  }
  if (model->parameters().empty()) return RefuseScript(path, "has no parameters to train");
  try {
    if (absl::Status status = CheckOutput(path, *model, classes, input); !status.ok()) {
      return status;
    }
  } catch (const std::exception& error) {
    return RefuseScript(path, absl::StrCat("fails for pictures of ", input.height, " x ",
                                           input.width, " x ", input.channels, ": ", Brief(error)));
  }
  return model;
}

}  // namespace hetero::train
