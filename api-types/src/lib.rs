//! CRD types, conditions, reasons, names and pure validation of carto.run.
