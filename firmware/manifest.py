# manifest.py - freezes slotmq_run; the manifest of a board includes it.
package("slotmq_run", opt=2)  # noqa: F821
