"""All rows, in the order of the table."""

import packing
import pipefisher
import planner
import unpadded

PAPERS = (unpadded.PAPER, packing.PAPER, planner.PAPER, pipefisher.PAPER)


def rows():
    return [row for paper in PAPERS for row in paper.rows]
