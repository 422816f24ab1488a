"""Text, tables and pictures of results."""

from rareswitch.report.charts import *
from rareswitch.report.effects_plot import *
from rareswitch.report.effects_text import *
from rareswitch.report.evaluation_plot import *
from rareswitch.report.evaluation_text import *
from rareswitch.report.experiment_text import *
from rareswitch.report.features_text import *
from rareswitch.report.figures import *
from rareswitch.report.html import *
from rareswitch.report.plan_text import *
from rareswitch.report.progress import *
from rareswitch.report.rows import *
from rareswitch.report.text import *
