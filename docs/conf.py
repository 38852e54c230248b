"""Configuration of Sphinx for the documentation, which `make docs` builds."""

import os

from evotree import __version__

# One thread: an executed example shows what it takes on one core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "evotree"
author = "The evotree developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "examples", "auto_examples/*.ipynb", "auto_examples/*.py"]
exclude_patterns += ["**sg_execution_times.rst"]  # left by older builds
# Detailed reports of papers' studies: written where their rows are, but no pages.
papers = ("cedt", "gea_odt", "oc1", "tao", "wodt")
exclude_patterns += [f"results/{name}.md" for name in papers]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]

# ---- text ---------------------------------------------------------------------------------------

# A name in single backticks leads to what it names, as numpydoc has it.
default_role = "py:obj"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
pygments_style = "friendly"

# ---- the API ------------------------------------------------------------------------------------

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings state types, shapes and ranges
numpydoc_show_class_members = False  # the template of classes lists them


def skips_inherited(app, kind, name, member, skip, options):
    """Leave out what scikit-learn documents, and what its metadata routing adds to a class."""
    home = getattr(member, "__module__", None) or ""
    routed = name.startswith("set_") and name.endswith("_request")
    return True if routed or home.startswith("sklearn.") else None


def setup(app):
    app.connect("autodoc-skip-member", skips_inherited)


# ---- the gallery --------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("evotree",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,  # a page that searches would find
    "capture_repr": (),  # the examples print what they show
}

# ---- the pages ----------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "evotree"
html_static_path = ["_static"]
html_css_files = ["evotree.css"]
html_extra_path = ["llms.txt"]
html_sidebars = {"**": ["pages.html"]}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_center": [],  # the sidebar lists all pages
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "logo": {"text": f"evotree {version}"},
}
# Where a file of docs/ is edited, such as https://example.org/evotree/edit/main/docs: each page
# then leads to its own, those of examples and of the API to what they are made from.
if edit_url := os.environ.get("EVOTREE_EDIT_URL"):
    sources = {"auto_examples/index": "examples/README.rst", "generated/": "api.rst"}
    html_theme_options["use_edit_page_button"] = True
    html_theme_options["secondary_sidebar_items"].insert(1, "edit-this-page")
    html_context = {
        "edit_page_url_template": edit_url
        + "/{% if 'auto_examples/plot' in file_name %}"
        "{{ file_name | replace('auto_', '') | replace('.rst', '.py') }}"
        + "".join(
            f"{{% elif '{page}' in file_name %}}{source}"
            for page, source in sources.items()
        )
        + "{% else %}{{ file_name }}{% endif %}"
    }
