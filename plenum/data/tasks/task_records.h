#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/data/tasks/task_options.h"

namespace plenum::data {

/// One example as its file has it, before anything is known of what fields mean.
struct TaskRecord {
  std::string place;      ///< file and line, or what a nested file calls it
  nlohmann::json fields;  ///< an object; of delimited files and CoNLL all text
};

/// Takes the records of a file in order, with the names of its columns: of the header, their numbers where
/// there is none, or the fields of the first object.
using TaskRecordSink = std::function<void(const std::vector<std::string>& columns, const TaskRecord& record)>;

/// What a file was, and what was passed over in it.
struct TaskFileNotes {
  std::size_t num_replaced = 0;  ///< places that were not UTF-8
};

/// The format that options and the file's name say. Throws UserError if neither does.
TaskFormat task_format_of(std::string_view path, describe::TaskKind kind, const TaskOptions& options);

/// The whole of a file, unpacked, without a byte order mark. Throws UserError as preparing text does for what
/// is not UTF-8.
std::string read_task_file(const std::string& path, const TaskOptions& options, TaskFileNotes& notes);

/// Whether columns are given by number, so that delimited files have no header.
bool has_numbered_columns(const TaskOptions& options);

/// Reads the records of `text`, which stands in messages as `path`, in any format but CoNLL. A .json file is
/// SQuAD's, a list of objects, an object with such a list as "data", or JSON lines. Throws UserError naming
/// the place.
void read_task_records(std::string_view text, const std::string& path, TaskFormat format,
                       const TaskOptions& options, const TaskRecordSink& sink);

}  // namespace plenum::data
