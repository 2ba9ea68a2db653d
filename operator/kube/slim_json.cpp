#include "operator/kube/slim_json.h"

#include <string>
#include <utility>
#include <vector>

namespace hetero::kube {
namespace {

using nlohmann::json;

// Makes values out of a parser's events, but for those that are passed over.
class Builder : public nlohmann::json_sax<json> {
 public:
  json Take() { return std::move(root_); }

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return Begin(json::value_t::object); }
  bool end_object() override { return End(); }
  bool start_array(std::size_t) override { return Begin(json::value_t::array); }
  bool end_array() override { return End(); }
  bool key(string_t& name) override {
    if (passed_over_ > 0) return true;
    Open& open = open_.back();
    pass_over_next_ = open.is_metadata && name == "managedFields";
    next_is_metadata_ = name == "metadata";
    if (!pass_over_next_) next_ = &(*open.value)[std::move(name)];
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    root_ = json(json::value_t::discarded);
    return false;
  }

 private:
  struct Open {
    json* value;
    bool is_metadata = false;
  };

  // Where the next value goes; null: nowhere.
  json* Place() {
    if (passed_over_ > 0 || std::exchange(pass_over_next_, false)) return nullptr;
    if (open_.empty()) return &root_;
    json& parent = *open_.back().value;
    if (!parent.is_array()) return next_;
    parent.emplace_back();
    return &parent.back();
  }
  template <typename Value>
  bool Put(Value&& value) {
    if (json* const place = Place()) *place = std::forward<Value>(value);
    return true;
  }
  bool Begin(json::value_t type) {
    json* const place = Place();
    if (place == nullptr) {
      ++passed_over_;
      return true;
    }
    *place = json(type);
    const bool in_array = !open_.empty() && open_.back().value->is_array();
    open_.push_back({place, !in_array && std::exchange(next_is_metadata_, false)});
    return true;
  }
  bool End() {
    if (passed_over_ > 0) {
      --passed_over_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  json root_;
  std::vector<Open> open_;  // around the next value, the outermost first
  json* next_ = nullptr;    // of the object's key that was last read
  bool next_is_metadata_ = false;
  bool pass_over_next_ = false;
  int passed_over_ = 0;  // how deep in what is passed over
};

}  // namespace

json ParseWithoutManagedFields(std::string_view text) {
  Builder builder;
  json::sax_parse(text, &builder);
  return builder.Take();
}

}  // namespace hetero::kube
