//! Names and column types for the dashboard: ui/src/data/tables.ts.

use base::TableSpec;
use std::fmt::Write;

/// All `tables` as a TypeScript module.
pub fn typescript(tables: &[&TableSpec]) -> String {
    let mut module =
        "/** Every table, with the type of each column. Written by `kvmscope schema --format typescript`. */\n\
                      export const TABLES = {\n"
            .to_owned();
    for spec in tables {
        let _ = writeln!(module, "  /** {} */\n  \"{}\": {{", spec.row, spec.address());
        for column in spec.columns {
            let _ = writeln!(module, "    {}: \"{}\",", column.name, column.kind.name());
        }
        module.push_str("  },\n");
    }
    module.push_str(
        "} as const;\n\n\
         /** `section.table`. */\n\
         export type TableName = keyof typeof TABLES;\n\n\
         /** A column of a table. */\n\
         export type ColumnName<Name extends TableName> = keyof (typeof TABLES)[Name] & string;\n",
    );
    module
}
