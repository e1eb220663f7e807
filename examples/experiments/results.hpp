// What an experiment has found: one line of JSON a run, in a file that only grows.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <gyre/core/types.hpp>
#include <gyre/io/files.hpp>
#include <gyre/io/json.hpp>
#include <gyre/io/json_field.hpp>
#include <gyre/io/json_writer.hpp>

#include "../support/html.hpp"

namespace experiments {

/// What is trained, how long, and from which seed. Two that are equal are the same run.
struct experiment {
  std::string model, task;
  gyre::index length = 0, rows = 16;  // tokens of a row; rows of a step
  double learning_rate = 0;
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;  // 0: as many as fit into `minutes`
  double minutes = 0;       // of training; 0 where steps are given

  bool operator==(const experiment&) const = default;
  std::uint64_t step_tokens() const { return static_cast<std::uint64_t>(rows * length); }
  /// A name for its folder.
  std::string name() const {
    return task + std::to_string(length) + '_' + model + "_lr" + examples::number_text(learning_rate, 6) + "_rows" +
           std::to_string(rows) + "_seed" + std::to_string(seed) + '_' +
           (steps > 0 ? std::to_string(steps) + "steps" : examples::number_text(minutes, 6) + "min");
  }
};

struct result {
  experiment of;
  std::string date;  // of its end, UTC
  int threads = 1;
  std::uint64_t steps = 0;                   // that were made
  double tokens = 0, seconds = 0;            // seen in all; of training, without validation and saving
  double parameters = 0, forward_flops = 0;  // FLOPs a token
  std::optional<double> tokens_to_90;        // until a validation showed 90% of all answers right; nothing: more than `tokens`
  double accuracy = 0, last_accuracy = 0;    // after training, on rows of its own
  double experts = 0, active = 0, depths = 0, hits = 0;  // see gyre::expert_use_report
  double per_depth_diversity = 0, distinct_sets = 0;
  std::optional<double> pooled_diversity, distinct_per_token, used_at_7;  // only where experts are shared by depths
};

namespace detail {

template <class Result, class Visitor>
void each_field(Result& r, Visitor&& v) {
  v("date", r.date);
  v("model", r.of.model), v("task", r.of.task), v("length", r.of.length), v("rows", r.of.rows);
  v("lr", r.of.learning_rate), v("seed", r.of.seed), v("minutes", r.of.minutes), v("asked_steps", r.of.steps);
  v("threads", r.threads), v("steps", r.steps), v("tokens", r.tokens), v("seconds", r.seconds);
  v("parameters", r.parameters), v("forward_flops", r.forward_flops);
  v("tokens_to_90", r.tokens_to_90), v("accuracy", r.accuracy), v("last_accuracy", r.last_accuracy);
  v("experts", r.experts), v("active", r.active), v("depths", r.depths), v("hits", r.hits);
  v("per_depth_diversity", r.per_depth_diversity), v("distinct_sets", r.distinct_sets);
  v("pooled_diversity", r.pooled_diversity), v("distinct_per_token", r.distinct_per_token), v("used_at_7", r.used_at_7);
}

struct to_line {
  gyre::json& out;
  template <class T>
  void operator()(const char* name, const T& value) const {
    out.set(name, value);
  }
  void operator()(const char* name, const std::optional<double>& value) const {
    out.set(name, value ? gyre::json(*value) : gyre::json(nullptr));
  }
};
struct from_line {
  const gyre::json_field& from;
  void operator()(const char* name, std::string& value) const { value = from[name].string(); }
  void operator()(const char* name, double& value) const { value = from[name].real(); }
  void operator()(const char* name, std::optional<double>& value) const {
    if (from[name].value().kind() != gyre::json_kind::null) value = from[name].real();
  }
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* name, T& value) const {
    if constexpr (std::is_unsigned_v<T>)
      value = from[name].uint64();
    else
      value = static_cast<T>(from[name].int64());
  }
};

}  // namespace detail

inline gyre::json to_json(const result& r) {
  gyre::json out = gyre::json::object();
  detail::each_field(r, detail::to_line{out});
  return out;
}
inline result result_of(const gyre::json_field& line) {
  result r;
  detail::each_field(r, detail::from_line{line});
  return r;
}

/// All results of a file, none if it is not there. A last line without its end, which a kill has cut, is left out.
inline std::vector<result> read_results(const std::filesystem::path& file) {
  std::vector<result> all;
  if (!std::filesystem::exists(file)) return all;
  const std::string text = gyre::read_file(file);
  int number = 0;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string where = file.string() + ":" + std::to_string(++number);
    const gyre::json value = gyre::parse_json(std::string_view(text).substr(begin, end - begin), where);
    all.push_back(result_of(gyre::json_field(value, where)));
  }
  return all;
}

/// Adds one result. Several programs may do so at once; what a kill has cut off before is removed.
inline void append_result(const std::filesystem::path& file, const result& r) {
  const std::string line = gyre::write_json(to_json(r)) + '\n', path = file.string();
  struct open_file {
    int descriptor;
    ~open_file() {
      if (descriptor >= 0) close(descriptor);
    }
  };
  const auto check = [&](bool fine) {
    if (!fine) gyre::fail("cannot add a result to ", path, ": ", std::system_category().message(errno));
  };
  const open_file out{open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
  check(out.descriptor >= 0);
  flock(out.descriptor, LOCK_EX);  // until it is closed; a file system without locks has one writer, we hope
  struct stat about {};
  check(fstat(out.descriptor, &about) == 0);
  off_t end = about.st_size;
  char last = '\n';
  while (end > 0 && pread(out.descriptor, &last, 1, end - 1) == 1 && last != '\n') --end;
  if (end < about.st_size) check(ftruncate(out.descriptor, end) == 0);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t wrote = write(out.descriptor, line.data() + done, line.size() - done);
    check(wrote > 0 || errno == EINTR);
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  check(fsync(out.descriptor) == 0);
}

}  // namespace experiments
