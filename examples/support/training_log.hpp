// What a training tells about itself, in memory and as a file of JSON lines, one object a line.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/json.hpp>
#include <gyre/io/json_field.hpp>
#include <gyre/io/json_writer.hpp>
#include <gyre/train/evaluate.hpp>
#include <gyre/train/report.hpp>

#include "training.hpp"

namespace examples {

/// One optimiser step.
struct step_record {
  gyre::step_report report;
  std::uint64_t tokens = 0;  // counted targets since the beginning
  double seconds = 0;        // of training since the beginning, without validation and saving
};
/// Held-out losses at several numbers of steps.
struct validation_record {
  std::uint64_t step = 0;
  std::string purpose;  // "interval", "last" (after the last step), or "watch" (r = 1 and 8 on a small sample)
  std::vector<gyre::evaluation> at;
  std::vector<accuracy> right = {};  // at the same numbers of steps; empty where nobody measures it
};
/// A failure that a watch has named.
struct failure_record {
  std::uint64_t step = 0;
  std::string failure, sentence;
};

/// All records of a training, in the order of steps.
struct training_records {
  std::vector<step_record> steps;
  std::vector<validation_record> validations;
  std::vector<failure_record> failures;
};

/// A finite number; null for one that JSON cannot hold.
inline gyre::json number_or_null(double value) { return std::isfinite(value) ? gyre::json(value) : gyre::json(nullptr); }

inline gyre::json to_json(const step_record& r) {
  gyre::json out = gyre::json::object();
  const auto put = [&](const char* name, double value) { out.set(name, number_or_null(value)); };
  out.set("step", r.report.step);
  put("loss", r.report.loss);
  put("bits", r.report.bits_per_token());
  out.set("r", r.report.depth.total()), out.set("n", r.report.depth.free_steps), out.set("k", r.report.depth.gradient_steps);
  put("gradient_norm", r.report.gradient_norm);
  put("learning_rate", r.report.learning_rate);
  out.set("rows", r.report.rows), out.set("step_tokens", r.report.tokens), out.set("tokens", r.tokens);
  put("seconds", r.seconds);
  put("token_correlation", r.report.seen.token_correlation);
  put("state_norm", r.report.seen.state_norm);
  put("state_change", r.report.seen.state_change);
  put("relative_change", r.report.seen.relative_change);
  put("head_input_norm", r.report.seen.head_input_norm);
  if (r.report.expert_load > 0) {  // a model with experts
    put("expert_load", r.report.expert_load);
    put("auxiliary_loss", r.report.auxiliary_loss);
  }
  return out;
}
inline gyre::json to_json(const validation_record& r) {
  gyre::json out = gyre::json::object(), all = gyre::json::array();
  for (std::size_t i = 0; i < r.at.size(); ++i) {
    const gyre::evaluation& e = r.at[i];
    gyre::json one = gyre::json::object();
    one.set("r", e.depth), one.set("loss", number_or_null(e.loss)), one.set("bits", number_or_null(e.bits_per_token()));
    one.set("perplexity", number_or_null(e.perplexity())), one.set("tokens", e.tokens);
    if (i < r.right.size()) {
      one.set("accuracy", r.right[i].all), one.set("last_accuracy", r.right[i].last);
      one.set("answers", r.right[i].answers), one.set("rows", r.right[i].rows);
    }
    all.push_back(std::move(one));
  }
  out.set("step", r.step), out.set("purpose", r.purpose), out.set("validation", std::move(all));
  return out;
}
inline gyre::json to_json(const failure_record& r) {
  gyre::json out = gyre::json::object();
  out.set("step", r.step), out.set("failure", r.failure), out.set("sentence", r.sentence);
  return out;
}

/// Adds the record of one line.
inline void read_record(const gyre::json_field& line, training_records& into) {
  const auto real = [&](const char* name) {
    return line[name].value().kind() == gyre::json_kind::null ? std::nan("") : line[name].real();
  };
  const std::uint64_t step = line["step"].uint64();
  if (const gyre::json* all = line.value().find("validation")) {
    validation_record r{step, line["purpose"].string(), {}, {}};
    for (const gyre::json& value : all->values()) {
      const gyre::json_field one(value, line.where());
      const bool finite = one["loss"].value().kind() != gyre::json_kind::null;
      r.at.push_back({static_cast<int>(one["r"].int64()), finite ? one["loss"].real() : std::nan(""),
                      static_cast<gyre::index>(one["tokens"].int64())});
      if (one.contains("accuracy"))
        r.right.push_back({one["accuracy"].real(), one["last_accuracy"].real(),
                           static_cast<gyre::index>(one["answers"].int64()), static_cast<gyre::index>(one["rows"].int64())});
    }
    into.validations.push_back(std::move(r));
  } else if (line.value().find("failure") != nullptr) {
    into.failures.push_back({step, line["failure"].string(), line["sentence"].string()});
  } else {
    step_record r;
    r.report = {.step = step,
                .loss = real("loss"),
                .depth = {static_cast<int>(line["n"].int64()), static_cast<int>(line["k"].int64())},
                .gradient_norm = real("gradient_norm"),
                .learning_rate = real("learning_rate"),
                .rows = static_cast<gyre::index>(line["rows"].int64()),
                .tokens = static_cast<gyre::index>(line["step_tokens"].int64()),
                .seen = {real("token_correlation"), real("state_norm"), real("state_change"), real("relative_change"),
                         real("head_input_norm")}};
    if (line.contains("expert_load"))
      r.report.expert_load = real("expert_load"), r.report.auxiliary_loss = real("auxiliary_loss");
    r.tokens = line["tokens"].uint64(), r.seconds = real("seconds");
    into.steps.push_back(std::move(r));
  }
}

/// The records, and the file that they are also appended to.
class training_log {
 public:
  /// Without a path nothing is written. A log that is there is kept up to `step`, the one of the checkpoint that the training
  /// goes on from: what came after it will happen again. At step 0 it begins anew.
  explicit training_log(std::filesystem::path path = {}, std::uint64_t step = 0) : path_(std::move(path)) {
    if (path_.empty()) return;
    std::string kept;
    if (step > 0 && std::filesystem::exists(path_)) {
      const std::string text = gyre::read_file(path_);
      int number = 0;
      for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
        end = text.find('\n', begin);
        if (end == std::string::npos) break;  // a line that a kill has cut
        ++number;
        const std::string_view line = std::string_view(text).substr(begin, end - begin);
        const std::string where = path_.string() + ":" + std::to_string(number);
        const gyre::json value = gyre::parse_json(line, where);
        if (gyre::json_field(value, where)["step"].uint64() > step) continue;
        read_record(gyre::json_field(value, where), records_);
        kept.append(line).push_back('\n');
      }
    }
    gyre::write_file_atomically(path_, kept);
    file_.open(path_, std::ios::app | std::ios::binary);
  }

  template <class Record>
  void add(Record record) {
    if (!path_.empty()) {
      file_ << gyre::write_json(to_json(record)) << '\n' << std::flush;
      gyre::require(static_cast<bool>(file_), "cannot write ", path_.string(),
                    "; is the disk full? The last checkpoint is complete: make room and go on with --resume");
    }
    list(record).push_back(std::move(record));
  }
  const training_records& records() const { return records_; }

 private:
  std::vector<step_record>& list(const step_record&) { return records_.steps; }
  std::vector<validation_record>& list(const validation_record&) { return records_.validations; }
  std::vector<failure_record>& list(const failure_record&) { return records_.failures; }

  std::filesystem::path path_;
  std::ofstream file_;
  training_records records_;
};

}  // namespace examples
